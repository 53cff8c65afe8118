/*
 * Stacks with asyncio's tasks: after the frames of the task that a thread runs come those of the
 * tasks that wait for it, then the loop's.
 */
#include <string.h>

#include "inspect/async.h"

#define WAITERS_MAX 100 /* tasks that wait for each other */

/* How many Python frames the thread has down to the coroutine of a running task; 0: the task does
 * not run there. */
static size_t frames_of(const struct prb_thread *thread, const struct prb_async_task *task)
{
    if (task->state != PRB_ASYNC_RUNNING || !task->frame_count || !thread->has_python)
        return 0;
    const struct prb_frame *outermost = &task->frames[task->frame_count - 1];
    for (size_t i = 0; i < thread->frame_count; i++)
        if (thread->frames[i].kind == PRB_FRAME_PYTHON &&
            thread->frames[i].addr == outermost->addr && thread->frames[i].code == outermost->code)
            return i + 1;
    return 0;
}

static struct prb_frame marker(struct prb_arena *arena, const struct prb_async_task *task)
{
    struct prb_frame row = {.kind = PRB_FRAME_TASK,
                            .column = -1,
                            .end_column = -1,
                            .instruction = -1,
                            .addr = task->id};
    row.name = task->name ? prb_arena_strdup(arena, task->name)
                          : prb_arena_printf(arena, "Task %#llx", (unsigned long long)task->id);
    row.qualname = row.name;
    return row;
}

/* A copy of a frame, with its strings in another arena. */
static struct prb_frame copy_of(struct prb_arena *arena, const struct prb_frame *frame)
{
    struct prb_frame row = *frame;
    const char **texts[] = {&row.name, &row.qualname, &row.filename, &row.short_filename};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = *texts[i] ? prb_arena_strdup(arena, *texts[i]) : NULL;
    return row;
}

/* The tasks that wait for each other, from the running one on; of several waiters the first. */
static size_t line_of(const struct prb_async_tasks *tasks, size_t from, size_t line[WAITERS_MAX])
{
    size_t count = 0;
    for (size_t at = from; count < WAITERS_MAX; at = tasks->items[at].awaited_by[0]) {
        for (size_t i = 0; i < count; i++)
            if (line[i] == at)
                return count; /* a cycle */
        line[count++] = at;
        if (!tasks->items[at].awaited_by_count)
            break;
    }
    return count;
}

static bool insert(struct prb_stacks_box *box, struct prb_thread *thread, size_t above,
                   const struct prb_async_tasks *tasks, size_t from, struct prb_error *err)
{
    size_t line[WAITERS_MAX], waiting = line_of(tasks, from, line), more = waiting, count = 0;
    for (size_t i = 1; i < waiting; i++)
        more += tasks->items[line[i]].frame_count;
    struct prb_frame *rows =
        prb_arena_alloc(&box->arena, (thread->frame_count + more) * sizeof *rows);
    if (!rows)
        return prb_nomem(err);
    memcpy(rows, thread->frames, above * sizeof *rows);
    count = above;
    for (size_t i = 0; i < waiting; i++) {
        const struct prb_async_task *task = &tasks->items[line[i]];
        for (size_t k = 0; i && k < task->frame_count; k++)
            rows[count++] = copy_of(&box->arena, &task->frames[k]);
        rows[count++] = marker(&box->arena, task);
    }
    memcpy(rows + count, thread->frames + above, (thread->frame_count - above) * sizeof *rows);
    thread->frames = rows;
    thread->frame_count += more;
    return true;
}

bool prb_stacks_add_tasks(struct prb_stacks *stacks, const struct prb_async_tasks *tasks,
                          struct prb_error *err)
{
    struct prb_stacks_box *box = (struct prb_stacks_box *)stacks;
    for (size_t i = 0; i < tasks->count; i++) {
        if (tasks->items[i].state != PRB_ASYNC_RUNNING)
            continue;
        for (size_t t = 0; t < stacks->thread_count; t++) {
            size_t above = frames_of(&stacks->threads[t], &tasks->items[i]);
            if (above && !insert(box, &stacks->threads[t], above, tasks, i, err))
                return false;
        }
    }
    return true;
}
