/* A handle of its own: a diagnosis takes seconds, and others look at the target meanwhile. */
#include "serve/live/diagnose.h"

#include <string.h>

#include "serve/live/watch.h"
#include "serve/work/targets.h"

PRB_DEFINE_AUTO_PTR(prb_skills, struct prb_skills, prb_skills_free)
PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)
PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)
PRB_DEFINE_AUTO_PTR(prb_diagnosis, struct prb_diagnosis, prb_diagnosis_free)

/* Of the threads that the server has watched. */
struct known {
    const struct prb_serve_diagnosis *wanted;
    const struct prb_stacks *stacks;
    double *since;
};

static double since_of(void *context, pid_t os_thread_id)
{
    const struct known *known = context;
    for (size_t i = 0; i < known->stacks->thread_count; i++)
        if (known->stacks->threads[i].os_thread_id == os_thread_id)
            return known->since[i];
    return -1;
}

static bool goes_on(void *context)
{
    const struct known *known = context;
    return known->wanted->goes_on(known->wanted->context);
}

static struct prb_diagnosis *diagnose(const struct prb_serve_diagnosis *wanted,
                                      struct prb_target *target,
                                      const struct prb_skill *const *chosen, size_t count,
                                      struct prb_error *err)
{
    const struct prb_target_info *info = prb_target_info(target);
    bool live = wanted->serve && wanted->serve->watch && info->kind == PRB_TARGET_PROCESS;
    PRB_AUTO(prb_stacks)
    struct prb_stacks *stacks = live ? prb_stacks_take(target, NULL, NULL) : NULL;
    PRB_AUTO_FREE double *since = calloc(stacks ? stacks->thread_count + 1 : 1, sizeof *since);
    struct known known = {wanted, stacks, since};
    struct prb_diagnose_options options = {
        .seconds = wanted->seconds, .go_on = goes_on, .context = &known};
    if (!since)
        return PRB_NULL(prb_nomem(err));
    if (stacks) {
        prb_watch_since(wanted->serve->watch, info->pid, prb_serve_started(info->pid), stacks,
                        since);
        options.since = since_of;
    }
    return prb_diagnose(target, NULL, chosen, count, &options, err);
}

char *prb_serve_diagnose(const struct prb_serve_diagnosis *wanted, struct prb_error *err)
{
    bool all = strcmp(wanted->name, "diagnose") == 0;
    PRB_AUTO(prb_skills) struct prb_skills *skills = prb_skills_find(NULL, err);
    PRB_AUTO_FREE const struct prb_skill **chosen =
        calloc(skills ? skills->count + 1 : 1, sizeof *chosen);
    size_t count = 0;
    if (!skills || !chosen)
        return NULL;
    const struct prb_skill *one = all ? NULL : prb_skill_named(skills, wanted->name, err);
    if (!all && !one)
        return NULL;
    for (size_t i = 0; i < skills->count; i++)
        if (all ? !skills->items[i]->path : skills->items[i] == one)
            chosen[count++] = skills->items[i];
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open(wanted->spec, NULL, err);
    PRB_AUTO(prb_diagnosis)
    struct prb_diagnosis *diagnosis = target ? diagnose(wanted, target, chosen, count, err) : NULL;
    return diagnosis ? prb_diagnosis_json(diagnosis, err) : NULL;
}
