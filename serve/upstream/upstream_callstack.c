/*
 * GET /apis/pythonext/callstack?tid=&mode=: the frames of a thread, the innermost first, each a
 * CFrame or a PyFrame.  tid: the kernel's or Python's; the main thread if not given.  mode: py,
 * native or mixed.
 */
#include <string.h>

#include "serve/upstream/upstream.h"

#include "format/json.h"
#include "serve/work/targets.h"

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

static json_t *value_of(const struct prb_local *local)
{
    return json_pack("{s:I,s:o,s:n,s:n,s:n,s:o}", "id", (json_int_t)local->addr, "class",
                     prb_json_text(local->type), "shape", "dtype", "device", "value",
                     prb_json_text(local->repr));
}

static json_t *frame_json(const struct prb_frame *frame)
{
    const char *name = frame->qualname ? frame->qualname : frame->name;
    char address[24];
    if (frame->kind == PRB_FRAME_NATIVE) {
        snprintf(address, sizeof address, "0x%llx", (unsigned long long)frame->code);
        return json_pack("{s:{s:s,s:o,s:o,s:i}}", "CFrame", "ip", address, "file",
                         prb_json_text(frame->filename ? frame->filename
                                       : frame->module ? frame->module
                                                       : ""),
                         "func", prb_json_text(name ? name : ""), "lineno",
                         frame->line > 0 ? frame->line : 0);
    }
    json_t *locals = json_object();
    for (size_t i = 0; i < frame->local_count; i++)
        json_object_set_new(locals, frame->locals[i].name, value_of(frame->locals + i));
    return json_pack("{s:{s:o,s:o,s:i,s:o}}", "PyFrame", "file",
                     prb_json_text(frame->filename ? frame->filename : ""), "func",
                     prb_json_text(name ? name : ""), "lineno", frame->line > 0 ? frame->line : 0,
                     "locals", locals);
}

static const struct prb_thread *thread_of(const struct prb_stacks *stacks, uint64_t tid)
{
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const struct prb_thread *one = stacks->threads + i;
        if (tid ? (uint64_t)one->os_thread_id == tid || one->thread_id == tid
                : one->os_thread_id == stacks->target.pid)
            return one;
    }
    return NULL;
}

static bool take_tid(const struct prb_question *question, uint64_t *out, struct prb_error *err)
{
    const char *text = prb_question_value(question, "tid");
    char *end = NULL;
    *out = text && *text ? strtoull(text, &end, 10) : 0;
    return !end || (!*end && *text >= '0' && *text <= '9') ||
           prb_fail(err, PRB_USAGE, "tid is a number, not \"%.40s\"", text);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *mode = prb_question_value(job->question, "mode");
    uint64_t tid;
    if (!mode || !*mode)
        mode = "mixed";
    if (strcmp(mode, "py") != 0 && strcmp(mode, "native") != 0 && strcmp(mode, "mixed") != 0)
        return prb_fail(err, PRB_USAGE, "mode is py, native or mixed, not \"%.40s\"", mode);
    if (!take_tid(job->question, &tid, err) || !prb_upstream_target(job, err))
        return false;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    const struct prb_stack_options options = {
        .native = *mode != 'p', .locals = *mode != 'n', .python_only = !tid, .hide_secrets = true};
    PRB_AUTO(prb_stacks)
    struct prb_stacks *stacks = prb_stacks_take(prb_serve_target_open(held), &options, err);
    if (!stacks)
        return false;
    const struct prb_thread *thread = thread_of(stacks, tid);
    if (!thread)
        return prb_fail(err, PRB_NOT_FOUND, "there is no thread %llu", (unsigned long long)tid);
    json_t *frames = json_array();
    for (size_t i = 0; i < thread->frame_count; i++) {
        enum prb_frame_kind kind = thread->frames[i].kind;
        if (kind == PRB_FRAME_PYTHON ? *mode != 'n' : kind == PRB_FRAME_NATIVE && *mode != 'p')
            json_array_append_new(frames, frame_json(thread->frames + i));
    }
    return prb_answer_json(job->answer, frames, err);
}

const struct prb_route prb_route_upstream_callstack = {
    .methods = PRB_GET,
    .path = "/apis/pythonext/callstack",
    .summary = "the frames of a thread",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "pid tid mode",
    .slow = true,
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
