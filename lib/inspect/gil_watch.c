/* Counts holders by the ids that Python knows; which threads these are is asked once, at the end. */
#include "inspect/gil_watch.h"

#include "py/gil.h"

#define HELD_MAX 4096 /* threads of one count; more are not told */

struct held {
    struct prb_gil_holder by;
    size_t looks;
    size_t last; /* look that it was counted in: a thread may hold several GILs */
};

struct prb_gil_watch {
    struct prb_target *target;
    size_t looks;
    struct held *items;
    size_t count, cap;
    struct prb_gil_holder *found; /* in one look */
    size_t found_count, found_cap;
};

struct prb_gil_watch *prb_gil_watch_new(struct prb_target *target, struct prb_error *err)
{
    bool known = false;
    for (size_t i = 0; i < target->runtime_count; i++)
        known |= prb_gil_is_known(&target->pys[i]);
    if (!known)
        return PRB_NULL(prb_fail(err, PRB_UNSUPPORTED, "process %d has no GIL",
                                 (int)prb_proc_pid(target->proc)));
    struct prb_gil_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return PRB_NULL(prb_nomem(err));
    watch->target = target;
    return watch;
}

void prb_gil_watch_free(struct prb_gil_watch *watch)
{
    if (!watch)
        return;
    free(watch->items);
    free(watch->found);
    free(watch);
}

static bool find_holders(struct prb_gil_watch *watch, struct prb_py *py)
{
    struct prb_gil_holder holders[PRB_GILS_MAX];
    size_t count = 0;
    if (!prb_gil_holders(py, holders, &count, NULL))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!PRB_GROW(watch->found, watch->found_count, watch->found_cap))
            return false;
        watch->found[watch->found_count++] = holders[i];
    }
    return true;
}

static struct held *held_by(struct prb_gil_watch *watch, const struct prb_gil_holder *by)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->items[i].by.thread_id == by->thread_id &&
            watch->items[i].by.native_id == by->native_id)
            return &watch->items[i];
    if (watch->count == HELD_MAX || !PRB_GROW(watch->items, watch->count, watch->cap))
        return NULL;
    watch->items[watch->count] = (struct held){.by = *by};
    return &watch->items[watch->count++];
}

void prb_gil_watch_look(struct prb_gil_watch *watch)
{
    struct prb_target *target = watch->target;
    watch->found_count = 0;
    for (size_t i = 0; i < target->runtime_count; i++)
        if (prb_gil_is_known(&target->pys[i]) && !find_holders(watch, &target->pys[i]))
            return;
    watch->looks++;
    for (size_t i = 0; i < watch->found_count; i++) {
        struct held *held = held_by(watch, &watch->found[i]);
        if (!held || held->last == watch->looks)
            continue;
        held->looks++;
        held->last = watch->looks;
    }
}

/* ---- shares ---- */

void prb_gil_shares_deinit(struct prb_gil_shares *shares)
{
    free(shares->items);
    *shares = (struct prb_gil_shares){0};
}

static pid_t thread_of(struct prb_gil_watch *watch, const struct prb_tasks *tasks,
                       const struct prb_gil_holder *holder)
{
    const struct prb_task *task =
        holder->native_id   ? prb_tasks_by_inner(tasks, holder->native_id)
        : holder->thread_id ? prb_tasks_by_pthread(tasks, watch->target->mem, holder->thread_id)
                            : NULL;
    return task ? task->tid : 0;
}

bool prb_gil_watch_take(struct prb_gil_watch *watch, struct prb_gil_shares *out,
                        struct prb_error *err)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    *out = (struct prb_gil_shares){.items = calloc(watch->count + 1, sizeof *out->items)};
    if (!out->items)
        return prb_nomem(err);
    if (watch->count && !prb_proc_tids(watch->target->proc, &tasks, err))
        return false;
    for (size_t i = 0; i < watch->count; i++)
        out->items[i] = (struct prb_gil_share){thread_of(watch, &tasks, &watch->items[i].by),
                                               watch->items[i].looks};
    out->count = watch->count;
    out->looks = watch->looks;
    watch->count = watch->looks = 0;
    return true;
}

double prb_gil_share_of(const struct prb_gil_shares *shares, pid_t tid)
{
    size_t held = 0;
    for (size_t i = 0; i < shares->count; i++)
        if (shares->items[i].tid == tid)
            held += shares->items[i].held;
    return shares->looks ? 100.0 * (double)held / (double)shares->looks : -1;
}
