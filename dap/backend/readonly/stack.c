/* Threads and stacks, read without the probe. */
#include <stdio.h>
#include <string.h>

#include "dap/backend/readonly/readonly.h"

static json_t *thread_name(struct prb_dap_readonly *readonly, const struct prb_stacks *stacks,
                           size_t i)
{
    const struct prb_thread *thread = &stacks->threads[i];
    const struct prb_target_info *info = prb_target_info(readonly->target);
    const char *name = thread->name;
    bool signalled = info->signal && info->signalled == thread->os_thread_id;
    char text[320];
    snprintf(text, sizeof text, "%.200s%s%s%s",
             name                 ? name
             : thread->has_python ? "Python thread"
                                  : "native thread",
             signalled ? " (" : "", signalled ? strsignal(info->signal) : "", signalled ? ")" : "");
    return prb_dap_text(text);
}

static json_t *thread_json(struct prb_dap_readonly *readonly, const struct prb_stacks *stacks,
                           size_t i)
{
    const struct prb_thread *thread = &stacks->threads[i];
    const char *place = prb_dap_native_place(thread);
    json_t *out = json_pack("{s:I, s:I, s:o, s:b}", "id", prb_dap_readonly_thread_id(stacks, i),
                            "ident", (json_int_t)thread->thread_id, "name",
                            thread_name(readonly, stacks, i), "parked", 0);
    if (out && place)
        json_object_set_new(out, "native", prb_dap_text(place));
    return out;
}

json_t *prb_dap_readonly_threads(struct prb_dap_readonly *readonly, const json_t *arguments,
                                 struct prb_error *err)
{
    const struct prb_stack_options now = {.all_interpreters = true};
    (void)arguments;
    PRB_AUTO(prb_stacks)
    struct prb_stacks *fresh =
        readonly->live && !readonly->view ? prb_stacks_take(readonly->target, &now, err) : NULL;
    if (readonly->live && !readonly->view && !fresh)
        return NULL;
    const struct prb_stacks *stacks = fresh ? fresh : prb_dap_readonly_view(readonly, err);
    if (!stacks)
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < stacks->thread_count; i++)
        json_array_append_new(list, thread_json(readonly, stacks, i));
    return json_pack("{s:o}", "threads", list);
}

json_t *prb_dap_readonly_stack(struct prb_dap_readonly *readonly, const json_t *arguments,
                               struct prb_error *err)
{
    json_int_t start = prb_dap_readonly_integer(arguments, "startFrame", 0);
    json_int_t levels = prb_dap_readonly_integer(arguments, "levels", 0);
    size_t index;
    const struct prb_thread *thread =
        prb_dap_readonly_thread_asked(readonly, arguments, &index, err);
    if (!thread)
        return NULL;
    size_t from = start < 0 ? 0 : (size_t)start, count = thread->frame_count;
    size_t end =
        levels > 0 && from < count && (size_t)levels < count - from ? from + (size_t)levels : count;
    json_t *list = json_array();
    for (size_t i = from; i < end; i++) {
        struct prb_dap_readonly_handle handle = {
            .kind = PRB_DAP_READONLY_FRAME, .thread = index, .frame = i};
        json_int_t number = prb_dap_readonly_handle(readonly, handle);
        if (number)
            json_array_append_new(list, prb_dap_frame_json(&thread->frames[i], number));
    }
    return json_pack("{s:o, s:I}", "stackFrames", list, "totalFrames", (json_int_t)count);
}
