/*
 * asyncio inside one interpreter, read without running code: its tasks, what each stands in, and
 * who waits for whom.  Relies on py/coroutine.h; everything of the target is bounded by the caps
 * below. asyncio.c reads one task, asyncio_list.c finds them all, asyncio_waiters.c who waits for a
 * future.
 */
#ifndef PRB_PY_ASYNCIO_H
#define PRB_PY_ASYNCIO_H

#include "py/coroutine.h"
#include "py/stack.h"

#define PRB_ASYNC_TASKS_MAX 1000000
#define PRB_WAITERS_MAX 100000 /* of one future */

/* A future or task, by its class (that of the C module or that of asyncio.futures) or one derived
 * from it. */
enum prb_future_kind {
    PRB_NO_FUTURE,
    PRB_FUTURE_C,
    PRB_TASK_C,
    PRB_FUTURE_PYTHON,
    PRB_TASK_PYTHON
};
enum prb_future_kind prb_future_kind(struct prb_objects *objects, prb_addr object);
static inline bool prb_is_task(enum prb_future_kind kind)
{
    return kind == PRB_TASK_C || kind == PRB_TASK_PYTHON;
}

/* One task that is not done, as it was read. */
struct prb_async_raw {
    prb_addr addr;
    enum prb_future_kind kind;
    prb_addr loop, coroutine, name;
    prb_addr waits_for; /* the future that wakes it; 0: it runs, or will */
    bool pending;
    int64_t cancels; /* requests to cancel that it has not seen, or (3.11+) not taken back */
    struct prb_awaits awaits;
};
void prb_async_raw_deinit(struct prb_async_raw *raw);

/* Replaces the contents of out.  *left: as prb_awaits_follow.  Errors: CORRUPT (no task there),
 * UNSUPPORTED (a C module whose tasks are not as our layout has them). */
bool prb_async_task_read(struct prb_objects *objects, prb_addr task, size_t *left,
                         struct prb_async_raw *out, struct prb_error *err);
bool prb_async_task_equal(const struct prb_async_raw *a, const struct prb_async_raw *b);
/* Its name, appended: "Task-7"; nothing where the version has none (3.7). */
bool prb_async_task_name(struct prb_objects *objects, const struct prb_async_raw *task,
                         struct prb_buf *out);

/*
 * Every task of an interpreter once, also some that are done: each(context, address).  Ends early
 * when each returns false.  threads: its thread states, whose lists are followed where the version
 * keeps them there (3.14+). *whole: every list was read to its end; else tasks are missing. *known:
 * there is such a list (3.7+).
 */
typedef bool prb_async_task_fn(void *context, prb_addr task);
void prb_async_tasks_each(struct prb_objects *objects, prb_addr interpreter,
                          const struct prb_raw_stacks *threads, size_t index,
                          prb_async_task_fn *each, void *context, bool *whole, bool *known);

/*
 * The tasks that may run on a thread now, as a rule one: each(context, task), until it returns
 * false.  By what the thread state says (3.14+), else every loop's current task (3.7+), whichever
 * thread the loop runs in.
 */
void prb_async_running_each(struct prb_objects *objects, prb_addr interpreter, prb_addr tstate,
                            prb_async_task_fn *each, void *context);

/*
 * Who waits for a future: each(context, future or task), by CPython's own links (3.14+), else by
 * its callbacks: the wake-up of a task, what gather, shield, wait and wait_for leave there, and a
 * TaskGroup's.
 */
void prb_async_waiters_each(struct prb_objects *objects, prb_addr future, prb_async_task_fn *each,
                            void *context);

/*
 * The table of offsets in the C module (section .AsyncioDebug, 3.14+) applied to the layout, each
 * bounded first. False where there is none: the layout's own serve.
 */
bool prb_asyncio_offsets_apply(struct prb_modules *modules, struct prb_mem *mem,
                               struct prb_layout *layout);

#endif
