/*
 * python.tasks: a row for each asyncio task that is not done.
 */
#include <string.h>

#include "base/buf.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    {"task_id", PRB_INTEGER, "addr", "id(task)"},
    {"name", PRB_TEXT, "", "Task.get_name(); NULL: the version has none (3.7)"},
    {"coroutine", PRB_TEXT, "", "__qualname__ of its coroutine"},
    {"state", PRB_TEXT, "",
     "running: on its thread's stack; ready: the loop will run it; waiting: for a future"},
    {"waits_for", PRB_TEXT, "", "class of the future that it waits for"},
    {"awaits", PRB_TEXT, "",
     "JSON array of the task_id of the tasks it waits for, for json_each()"},
    {"awaited_by", PRB_TEXT, "",
     "JSON array of the task_id of the tasks that wait for it, also through gather, shield, wait, "
     "wait_for or a "
     "TaskGroup"},
    {"stack", PRB_TEXT, "", "a line \"function (file:line)\" for each frame, innermost first"},
    {"function", PRB_TEXT, "", "qualified name of the innermost frame"},
    {"file", PRB_TEXT, "", "co_filename of the innermost frame"},
    {"line", PRB_INTEGER, "", "current line of the innermost frame"},
    {"depth", PRB_INTEGER, "count", "frames in stack"},
    {"cancels", PRB_INTEGER, "count", "requests to cancel it that are pending"},
    {"unstable", PRB_INTEGER, "", "1: no two readings were equal"},
    {"loop", PRB_INTEGER, "addr", "id() of its event loop"},
    {"loop_type", PRB_TEXT, "", "class of its event loop"},
    {"pid", PRB_INTEGER, "", "in the caller's pid namespace"},
    {"interpreter", PRB_INTEGER, "", "0: the main one"},
    {"thread_id", PRB_INTEGER, "", "of the loop's thread: threading.get_ident(); NULL: not known"},
    {"os_thread_id", PRB_INTEGER, "", "of the loop's thread: the kernel's id"},
    {"thread_name", PRB_TEXT, "", "of the loop's thread"},
    {0},
};

static void add_links(struct prb_rows *rows, const struct prb_async_tasks *tasks,
                      const size_t *indices, size_t count)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    prb_buf_addc(&text, '[');
    for (size_t i = 0; i < count; i++)
        prb_buf_addf(&text, "%s%llu", i ? ", " : "",
                     (unsigned long long)tasks->items[indices[i]].id);
    prb_buf_addc(&text, ']');
    prb_row_text(rows, prb_buf_ok(&text) ? text.data : NULL);
}

static void add_stack(struct prb_rows *rows, const struct prb_async_task *task)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0; i < task->frame_count; i++) {
        const struct prb_frame *frame = &task->frames[i];
        const char *file = frame->short_filename ? frame->short_filename : frame->filename;
        prb_buf_adds(&text, i ? "\n" : "");
        prb_buf_adds(&text, frame->qualname ? frame->qualname : frame->name ? frame->name : "?");
        if (file)
            prb_buf_addf(&text, " (%s:%d)", file, frame->line);
    }
    prb_row_text(rows, prb_buf_ok(&text) && text.data ? text.data : NULL);
}

static void add_task(struct prb_rows *rows, const struct prb_async_tasks *tasks,
                     const struct prb_async_task *task)
{
    static const char *const states[] = {[PRB_ASYNC_RUNNING] = "running",
                                         [PRB_ASYNC_READY] = "ready",
                                         [PRB_ASYNC_WAITING] = "waiting"};
    const struct prb_frame *top = task->frame_count ? &task->frames[0] : NULL;
    prb_row_begin(rows);
    prb_row_int(rows, (int64_t)task->id);
    prb_row_text(rows, task->name);
    prb_row_text(rows, task->coroutine);
    prb_row_text(rows, states[task->state]);
    prb_row_text(rows, task->waits_for);
    add_links(rows, tasks, task->awaits, task->awaits_count);
    add_links(rows, tasks, task->awaited_by, task->awaited_by_count);
    add_stack(rows, task);
    prb_row_text(rows, top ? top->qualname : NULL);
    prb_row_text(rows, top ? top->filename : NULL);
    prb_row_int_unless(rows, top ? top->line : 0, 0);
    prb_row_int(rows, (int64_t)task->frame_count);
    prb_row_int(rows, task->cancels);
    prb_row_int(rows, task->unstable);
    prb_row_int_unless(rows, (int64_t)task->loop, 0);
    prb_row_text(rows, task->loop_type);
    prb_row_int(rows, tasks->target.pid);
    prb_row_int(rows, task->interpreter);
    prb_row_int_unless(rows, (int64_t)task->thread_id, 0);
    prb_row_int_unless(rows, task->os_thread_id, 0);
    prb_row_text(rows, task->thread_name);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_async_tasks *tasks = prb_async_tasks_take(prb_rows_target(rows), err);
    if (!tasks)
        return false;
    if (tasks->warning)
        prb_rows_warn(rows, "%s", tasks->warning);
    for (size_t i = 0; i < tasks->count; i++)
        add_task(rows, tasks, &tasks->items[i]);
    prb_async_tasks_free(tasks);
    return true;
}

const struct prb_table prb_table_python_tasks = {
    .schema = "python",
    .name = "tasks",
    .doc = "the asyncio tasks of all event loops that are not done, and who waits for whom",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
