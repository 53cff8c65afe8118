/*
 * Tasks of asyncio as JSON (tasks.schema.json).
 */
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "format/json.h"

static json_t *number(uint64_t value)
{
    return value ? json_integer((json_int_t)value) : json_null();
}

static json_t *links(const struct prb_async_tasks *tasks, const size_t *indices, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer((json_int_t)tasks->items[indices[i]].id));
    return list;
}

/* rank: NULL without the key. */
static json_t *task_json(const struct prb_async_tasks *tasks, const struct prb_async_task *task,
                         const int *rank)
{
    static const char *const states[] = {[PRB_ASYNC_RUNNING] = "running",
                                         [PRB_ASYNC_READY] = "ready",
                                         [PRB_ASYNC_WAITING] = "waiting"};
    json_t *frames = json_array();
    for (size_t i = 0; i < task->frame_count; i++)
        json_array_append_new(frames, prb_json_frame(&task->frames[i]));
    json_t *out = json_pack(
        "{s:i, s:I, s:o, s:o, s:s, s:I, s:o, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "pid", (int)tasks->target.pid, "id", (json_int_t)task->id, "name",
        prb_json_text(task->name), "coroutine", prb_json_text(task->coroutine), "state",
        states[task->state], "cancels", (json_int_t)task->cancels, "waits_for",
        prb_json_text(task->waits_for), "unstable", task->unstable, "interpreter",
        (json_int_t)task->interpreter, "loop", number(task->loop), "loop_type",
        prb_json_text(task->loop_type), "thread_id", number(task->thread_id), "os_thread_id",
        number((uint64_t)task->os_thread_id), "thread_name", prb_json_text(task->thread_name),
        "awaited_by", links(tasks, task->awaited_by, task->awaited_by_count), "awaits",
        links(tasks, task->awaits, task->awaits_count), "frames", frames);
    if (out && rank)
        json_object_set_new(out, "rank", *rank >= 0 ? json_integer(*rank) : json_null());
    return out;
}

/* A task's lines, two deeper than they come; JSON has no line feed within a text. */
static int add_deeper(const char *text, size_t length, void *context)
{
    struct prb_buf *out = context;
    for (const char *end; length && (end = memchr(text, '\n', length));) {
        size_t line = (size_t)(end - text) + 1;
        prb_buf_add(out, text, line);
        prb_buf_adds(out, "  ");
        text += line;
        length -= line;
    }
    prb_buf_add(out, text, length);
    return prb_buf_ok(out) ? 0 : -1;
}

/* One by one: all of them as JSON's objects at once would take many times the text's memory. */
static bool add_tasks(struct prb_buf *out, const struct prb_async_tasks *tasks, const int *rank,
                      bool *any)
{
    bool good = true;
    for (size_t i = 0; good && i < tasks->count; i++) {
        json_t *task = task_json(tasks, &tasks->items[i], rank);
        prb_buf_adds(out, *any ? ",\n  " : "\n  ");
        *any = true;
        good = task && json_dump_callback(task, add_deeper, out, JSON_INDENT(2)) == 0;
        json_decref(task);
    }
    return good;
}

char *prb_async_tasks_json_all(const struct prb_async_tasks *const *tasks, const int *ranks,
                               size_t count, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    bool good = true, any = false;
    prb_buf_adds(&out, "[");
    for (size_t i = 0; good && i < count; i++)
        good = add_tasks(&out, tasks[i], ranks ? &ranks[i] : NULL, &any);
    prb_buf_adds(&out, any ? "\n]" : "]");
    char *text = good ? prb_buf_steal(&out) : NULL;
    return text ? text : PRB_NULL(prb_nomem(err));
}

char *prb_async_tasks_json(const struct prb_async_tasks *tasks, struct prb_error *err)
{
    return prb_async_tasks_json_all(&tasks, NULL, 1, err);
}
