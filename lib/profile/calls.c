/*
 * Stays in functions, made of the stays in stacks: what two consecutive stacks of a thread have in
 * common from the outermost function on goes on, the rest ends and begins.
 */
#include <string.h>

#include "profile/profile.h"

#define GAP 1e-9 /* s: a stay that begins later than the one before ended does not follow it */

struct stack {
    struct prb_profile_visit *visits; /* outermost first; end: when it was seen last */
    size_t count, cap;
};

struct visiting {
    const struct prb_profile *profile;
    struct stack *stacks; /* by thread */
    uint32_t *path;
    size_t path_count, path_cap;
    prb_profile_visit_fn *each;
    void *context;
    bool on, failed;
};

static void end_from(struct visiting *v, struct stack *stack, size_t depth)
{
    while (stack->count > depth && v->on)
        v->on = v->each(v->context, &stack->visits[--stack->count]);
}

/* The nodes from the outermost to this one. */
static bool find_path(struct visiting *v, uint32_t node)
{
    v->path_count = 0;
    for (uint32_t at = node; at; at = v->profile->nodes[at].parent) {
        if (!PRB_GROW(v->path, v->path_count, v->path_cap))
            return false;
        v->path[v->path_count++] = at;
    }
    for (size_t i = 0; i < v->path_count / 2; i++) {
        uint32_t other = v->path[i];
        v->path[i] = v->path[v->path_count - 1 - i];
        v->path[v->path_count - 1 - i] = other;
    }
    return true;
}

static const struct prb_profile_frame *frame_at(const struct visiting *v, size_t depth)
{
    return &v->profile->frames[v->profile->nodes[v->path[depth]].frame];
}

static void begin_to(struct visiting *v, struct stack *stack, const struct prb_profile_stay *stay)
{
    while (stack->count < v->path_count) {
        const struct prb_profile_frame *frame = frame_at(v, stack->count);
        if (!PRB_GROW(stack->visits, stack->count, stack->cap)) {
            v->failed = true;
            return;
        }
        stack->visits[stack->count] = (struct prb_profile_visit){
            .thread = stay->thread,
            .function = frame->function,
            .line = frame->line,
            .depth = (uint32_t)stack->count,
            .start = stay->start,
        };
        stack->count++;
    }
}

static bool take_stay(void *context, const struct prb_profile_stay *stay)
{
    struct visiting *v = context;
    struct stack *stack = &v->stacks[stay->thread];
    size_t common = 0;
    if (!find_path(v, stay->node)) {
        v->failed = true;
        return false;
    }
    if (stack->count && stay->start <= stack->visits[0].end + GAP)
        while (common < stack->count && common < v->path_count &&
               stack->visits[common].function == frame_at(v, common)->function)
            common++;
    end_from(v, stack, common);
    begin_to(v, stack, stay);
    for (size_t i = 0; i < stack->count; i++) {
        struct prb_profile_visit *visit = &stack->visits[i];
        visit->end = stay->end;
        visit->samples += stay->samples;
        visit->ns += stay->ns;
        if (i + 1 == stack->count) {
            visit->self_samples += stay->samples;
            visit->self_ns += stay->ns;
        }
    }
    return v->on && !v->failed;
}

bool prb_profile_each_visit(const struct prb_profile *profile, prb_profile_visit_fn *each,
                            void *context, struct prb_error *err)
{
    PRB_AUTO_FREE struct stack *stacks = calloc(profile->thread_count + 1, sizeof *stacks);
    if (!stacks)
        return prb_fail(err, PRB_NOMEM, "profile");
    struct visiting v = {
        .profile = profile, .stacks = stacks, .each = each, .context = context, .on = true};
    bool ok = prb_profile_each_stay(profile, take_stay, &v, err);
    for (size_t i = 0; i < profile->thread_count; i++) {
        if (ok && !v.failed)
            end_from(&v, &stacks[i], 0);
        free(stacks[i].visits);
    }
    free(v.path);
    return ok && (!v.failed || prb_fail(err, PRB_NOMEM, "profile"));
}
