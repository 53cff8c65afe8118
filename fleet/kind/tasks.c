/* Tasks of asyncio, merged: equal ones are one group.  args: by_function.  result: struct prb_merged,
 * in which a group's thread says what its tasks are: coroutine, state, what they wait for. */
#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "fleet/kind/merging.h"

#define NAME_MAX_ 64

PRB_DEFINE_AUTO_PTR(prb_async_tasks, struct prb_async_tasks, prb_async_tasks_free)

/* A name that somebody gave it; those of asyncio itself, "Task-12", say nothing.  Digits are "#". */
static void add_name(struct prb_buf *out, const char *name)
{
    static const char own[] = "Task-";
    size_t len = strlen(own);
    if (!name || (strncmp(name, own, len) == 0 && !name[len + strspn(name + len, "0123456789")]))
        return;
    bool digit = false;
    for (size_t i = 0; name[i] && i < NAME_MAX_; i++) {
        bool is_one = isdigit((unsigned char)name[i]);
        if (!is_one || !digit)
            prb_buf_addc(out, is_one ? '#' : name[i]);
        digit = is_one;
    }
    prb_buf_addc(out, ' ');
}

/* "worker-# fetch: waiting for a Future" */
static void describe(struct prb_buf *out, const struct prb_async_task *task)
{
    static const char *const states[] = {[PRB_ASYNC_RUNNING] = "running",
                                         [PRB_ASYNC_READY] = "ready",
                                         [PRB_ASYNC_WAITING] = "waiting"};
    add_name(out, task->name);
    prb_buf_addf(out, "%.120s: %s", task->coroutine ? task->coroutine : "?", states[task->state]);
    if (task->awaits_count)
        prb_buf_adds(out, task->awaits_count == 1 ? " for a task" : " for tasks");
    else if (task->waits_for)
        prb_buf_addf(out, " for a %.60s", task->waits_for);
    if (task->cancels > 0)
        prb_buf_adds(out, ", being cancelled");
    if (task->unstable)
        prb_buf_adds(out, ", unstable");
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    struct prb_target *target = prb_fleet_seat_target(seat, err);
    PRB_AUTO(prb_async_tasks)
    struct prb_async_tasks *tasks = target ? prb_async_tasks_take(target, err) : NULL;
    PRB_AUTO(prb_merged) struct prb_merged *merged = tasks ? prb_merged_by(args, err) : NULL;
    for (size_t i = 0; merged && i < tasks->count; i++) {
        const struct prb_async_task *task = &tasks->items[i];
        PRB_AUTO(prb_buf) struct prb_buf what = {0};
        describe(&what, task);
        if (!prb_buf_ok(&what))
            return prb_nomem(err);
        if (!prb_merged_add_frames(merged, seat->member.rank, what.data, task->frames,
                                   task->frame_count, err))
            return false;
    }
    return merged && prb_merged_put(merged, out, err);
}

const struct prb_fleet_kind prb_fleet_kind_tasks = {
    .name = "tasks",
    .budget = 5,
    .large = true,
    .of_rank = of_rank,
    .at_host = prb_merged_at_host,
    .at_root = prb_merged_at_root,
};
