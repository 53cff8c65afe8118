/* Who holds the GIL, read from outside: for whoever waited for it in vain.  See probing.h. */
#include <stdio.h>

#include "base/cleanup.h"
#include "inspect/holder.h"

PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)
PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

/* "f (train.py:12)" of the innermost Python frame, behind the native one that runs for it. */
static void describe_place(const struct prb_thread *thread, char *text, size_t size)
{
    const struct prb_frame *native = NULL;
    size_t at = 0;
    for (; at < thread->frame_count && thread->frames[at].kind != PRB_FRAME_PYTHON; at++)
        if (!native && thread->frames[at].kind == PRB_FRAME_NATIVE && thread->frames[at].name)
            native = &thread->frames[at];
    const struct prb_frame *frame = at < thread->frame_count ? &thread->frames[at] : NULL;
    const char *file = !frame                  ? NULL
                       : frame->short_filename ? frame->short_filename
                                               : frame->filename;
    if (frame)
        snprintf(text, size, "%.100s (%.100s:%d)%s%.60s", frame->qualname ? frame->qualname : "?",
                 file ? file : "?", frame->line, native ? " in " : "", native ? native->name : "");
    else
        snprintf(text, size, "%.100s", native ? native->name : "a place without Python frames");
}

void prb_holder_describe(const struct prb_thread *thread, char *text, size_t size)
{
    char place[260];
    describe_place(thread, place, sizeof place);
    snprintf(text, size, "thread %d%s%.40s%s at %s", (int)thread->os_thread_id,
             thread->name ? " \"" : "", thread->name ? thread->name : "", thread->name ? "\"" : "",
             place);
}

void prb_gil_holder_of(const struct prb_stacks *stacks, char *text, size_t size)
{
    snprintf(text, size, "%s", "");
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (stacks->threads[i].gil == PRB_GIL_HOLDING) {
            prb_holder_describe(&stacks->threads[i], text, size);
            break;
        }
}

bool prb_gil_holder(pid_t pid, char *text, size_t size, struct prb_error *err)
{
    static const struct prb_stack_options native = {.native = true};
    PRB_AUTO(prb_target) struct prb_target *target = prb_target_open_pid(pid, err);
    PRB_AUTO(prb_stacks)
    struct prb_stacks *stacks = target ? prb_stacks_take(target, &native, err) : NULL;
    if (stacks)
        prb_gil_holder_of(stacks, text, size);
    return stacks;
}
