/*
 * Stacks as JSON: every key of `py-spy dump --json` with its meaning, and more
 * (backtrace.schema.json).
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "format/json.h"

json_t *prb_json_text(const char *value)
{
    if (!value)
        return json_null();
    json_t *string = json_string(value);
    return string ? string : json_string("\xef\xbf\xbd"); /* not UTF-8 */
}

json_t *prb_json_value(const struct prb_value *value)
{
    switch (value->type) {
    case PRB_INTEGER:
        return json_integer(value->integer);
    case PRB_REAL:
        return isfinite(value->real) ? json_real(value->real) : json_null();
    case PRB_TEXT:
        return prb_json_text(value->text);
    case PRB_BLOB: {
        PRB_AUTO(prb_buf) struct prb_buf hex = {0};
        for (size_t i = 0; i < value->length; i++)
            prb_buf_addf(&hex, "%02x", (unsigned char)value->text[i]);
        return prb_json_text(hex.data ? hex.data : "");
    }
    case PRB_NULL_VALUE:
        break;
    }
    return json_null();
}

static json_t *column(int value) { return value < 0 ? json_null() : json_integer(value); }

static json_t *local_json(const struct prb_local *local)
{
    return json_pack("{s:o, s:I, s:b, s:o, s:o}", "name", prb_json_text(local->name), "addr",
                     (json_int_t)local->addr, "arg", local->arg, "repr", prb_json_text(local->repr),
                     "type", prb_json_text(local->type));
}

static json_t *locals_json(const struct prb_frame *frame)
{
    if (!frame->locals)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < frame->local_count; i++)
        json_array_append_new(list, local_json(&frame->locals[i]));
    return list;
}

json_t *prb_json_frame(const struct prb_frame *frame)
{
    static const char *const kinds[] = {[PRB_FRAME_PYTHON] = "python",
                                        [PRB_FRAME_NATIVE] = "native",
                                        [PRB_FRAME_BROKEN] = "broken",
                                        [PRB_FRAME_TASK] = "task"};
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:i, s:o, s:b, s:b, s:b, s:o}",
                     "kind", kinds[frame->kind], "name", prb_json_text(frame->name), "qualname",
                     prb_json_text(frame->qualname), "filename",
                     prb_json_text(frame->filename ? frame->filename : frame->module),
                     "short_filename", prb_json_text(frame->short_filename), "module",
                     prb_json_text(frame->module), "line", frame->line, "column",
                     column(frame->column), "end_line", frame->end_line, "end_column",
                     column(frame->end_column), "is_entry", frame->is_entry, "is_shim_entry",
                     frame->is_shim_entry, "guessed", frame->guessed, "locals", locals_json(frame));
}

static json_t *process_json(const struct prb_target_info *target)
{
    return json_pack("{s:i, s:o, s:n}", "pid", (int)target->pid, "command_line",
                     prb_json_text(target->command), "parent");
}

static json_t *thread_json(const struct prb_stacks *stacks, const struct prb_thread *thread)
{
    static const char *const gil[] = {
        [PRB_GIL_NONE] = "none", [PRB_GIL_WAITING] = "waiting", [PRB_GIL_HOLDING] = "holding"};
    json_t *frames = json_array();
    for (size_t i = 0; i < thread->frame_count; i++)
        json_array_append_new(frames, prb_json_frame(&thread->frames[i]));
    return json_pack("{s:i, s:I, s:o, s:o, s:b, s:b, s:o, s:s, s:b, s:b, s:o, s:o}", "pid",
                     (int)stacks->target.pid, "thread_id", (json_int_t)thread->thread_id,
                     "thread_name", prb_json_text(thread->name), "os_thread_id",
                     thread->os_thread_id ? json_integer(thread->os_thread_id) : json_null(),
                     "active", thread->active, "owns_gil", thread->gil == PRB_GIL_HOLDING,
                     "interpreter",
                     thread->interpreter < 0 ? json_null() : json_integer(thread->interpreter),
                     "gil_state", gil[thread->gil], "gc", thread->gc, "unstable", thread->unstable,
                     "process_info", process_json(&stacks->target), "frames", frames);
}

static size_t add_threads(json_t *list, const struct prb_stacks *stacks, const int *rank)
{
    for (size_t i = 0; i < stacks->thread_count; i++) {
        json_t *thread = thread_json(stacks, &stacks->threads[i]);
        if (thread && stacks->threads[i].raised)
            json_object_set_new(thread, "raised", json_true());
        if (thread && rank)
            json_object_set_new(thread, "rank", *rank < 0 ? json_null() : json_integer(*rank));
        if (thread && i == 0)
            json_object_set_new(thread, "layout", prb_json_text(stacks->target.layout));
        json_array_append_new(list, thread);
    }
    return stacks->thread_count;
}

char *prb_stacks_json_all(const struct prb_stacks *const *stacks, const int *ranks, size_t count,
                          struct prb_error *err)
{
    json_t *threads = json_array();
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        wanted += add_threads(threads, stacks[i], ranks ? &ranks[i] : NULL);
    char *out = json_array_size(threads) == wanted ? json_dumps(threads, JSON_INDENT(2)) : NULL;
    json_decref(threads);
    return out ? out : PRB_NULL(prb_nomem(err));
}

char *prb_stacks_json(const struct prb_stacks *stacks, struct prb_error *err)
{
    return prb_stacks_json_all(&stacks, NULL, 1, err);
}
