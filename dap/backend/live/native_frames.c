/*
 * See native_frames.h.  prb_stacks_take() merges native and Python frames by anchors; a merge that
 * it is not sure of is not used here.  One target stays open for the session, so that symbols are
 * read once.
 */
#include "dap/backend/live/native_frames.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "dap/backend/frames.h"

/* Bytes of a native function in a thread's name; C++ templates run to thousands. */
#define NAME_MAX_BYTES 120

struct prb_dap_native {
    pthread_mutex_t lock; /* a target serves one thread at a time */
    struct prb_target *target;
    uint32_t next_id;
};

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)
PRB_DEFINE_AUTO_PTR(json, json_t, json_decref)

struct prb_dap_native *prb_dap_native_open(pid_t pid, struct prb_error *err)
{
    struct prb_target *target = prb_target_open_pid(pid, err);
    struct prb_dap_native *native = target ? calloc(1, sizeof *native) : NULL;
    if (!native) {
        if (target)
            prb_fail(err, PRB_NOMEM, "out of memory");
        prb_target_close(target);
        return NULL;
    }
    pthread_mutex_init(&native->lock, NULL);
    native->target = target;
    return native;
}

void prb_dap_native_close(struct prb_dap_native *native)
{
    if (!native)
        return;
    prb_target_close(native->target);
    pthread_mutex_destroy(&native->lock);
    free(native);
}

/* ---- matching ---- */

/* The probe may be in a memory file, or be a copy with something before its name. */
static bool is_ours(const struct prb_frame *frame)
{
    return frame->kind == PRB_FRAME_NATIVE &&
           strstr(prb_dap_base_name(frame->module), "libprobe.so");
}

static bool same_name(const struct prb_frame *frame, const char *name)
{
    return (frame->name && strcmp(frame->name, name) == 0) ||
           (frame->qualname && strcmp(frame->qualname, name) == 0);
}

static const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The line of the innermost frame may have been read a moment earlier or later; the others cannot
 * move. */
static bool same_frame(const struct prb_frame *frame, const json_t *known, bool innermost)
{
    const char *path = string_of(known, "path");
    bool file = !*path || strcmp(prb_dap_base_name(path), prb_dap_base_name(frame->filename)) == 0;
    bool line = json_integer_value(json_object_get(known, "line")) == frame->line;
    return file && (line || (innermost && same_name(frame, string_of(known, "name"))));
}

/* Index of the agent's innermost frame among the thread's; thread->frame_count: the two differ.
 * Frames further in belong to a call that began since (one that the debugger runs on the
 * thread). */
static size_t align(const struct prb_thread *thread, const json_t *frames)
{
    size_t known = json_array_size(frames), at = thread->frame_count;
    while (known > 0 && at-- > 0) {
        const struct prb_frame *frame = &thread->frames[at];
        if (frame->kind == PRB_FRAME_BROKEN)
            return thread->frame_count;
        if (frame->kind != PRB_FRAME_PYTHON)
            continue;
        known--;
        if (!same_frame(frame, json_array_get(frames, known), known == 0))
            return thread->frame_count;
        if (known == 0)
            return at;
    }
    return thread->frame_count;
}

static bool python_further_in(const struct prb_thread *thread, size_t end)
{
    for (size_t i = 0; i < end; i++)
        if (thread->frames[i].kind == PRB_FRAME_PYTHON)
            return true;
    return false;
}

/* Add the native frames [from, to), between two frames of the program; none if one of them is the
 * probe's. */
static size_t add_run(struct prb_dap_native *native, const struct prb_thread *thread, size_t from,
                      size_t to, json_t *out)
{
    size_t added = 0;
    for (size_t i = from; i < to; i++)
        if (is_ours(&thread->frames[i]))
            return 0;
    for (size_t i = from; i < to; i++) {
        if (thread->frames[i].kind != PRB_FRAME_NATIVE || thread->frames[i].guessed)
            continue;
        json_int_t id = PRB_DAP_NATIVE_ID + (native->next_id++ & (PRB_DAP_NATIVE_ID - 1));
        json_t *frame = prb_dap_frame_json(&thread->frames[i], id);
        if (frame && json_array_append_new(out, frame) == 0)
            added++;
    }
    return added;
}

static size_t lay_over(struct prb_dap_native *native, const struct prb_thread *thread,
                       const json_t *frames, json_t *out)
{
    size_t known = json_array_size(frames), first = known ? align(thread, frames) : 0, added = 0;
    if (known && first == thread->frame_count)
        return 0;
    size_t from = known && python_further_in(thread, first) ? first : 0, next = 0;
    for (size_t i = from; i <= thread->frame_count; i++) {
        bool python = i < thread->frame_count && thread->frames[i].kind == PRB_FRAME_PYTHON;
        if (!python && i < thread->frame_count)
            continue;
        added += add_run(native, thread, from, i, out);
        if (python && next < known)
            json_array_append(out, json_array_get(frames, next++));
        from = i + 1;
    }
    return next == known ? added : 0;
}

static struct prb_stacks *take_stacks(struct prb_dap_native *native, pid_t thread, bool untouched,
                                      bool python_only)
{
    struct prb_stack_options options = {.native = true,
                                        .all_interpreters = true,
                                        .untouched = untouched,
                                        .python_only = python_only,
                                        .only_thread = (uint64_t)thread};
    pthread_mutex_lock(&native->lock);
    struct prb_stacks *stacks = prb_stacks_take(native->target, &options, NULL);
    pthread_mutex_unlock(&native->lock);
    return stacks;
}

bool prb_dap_native_merge(struct prb_dap_native *native, pid_t thread, json_t *stack)
{
    const json_t *frames = json_object_get(stack, "stackFrames");
    if (!native || !json_is_array(frames) || thread <= 0)
        return false;
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = take_stacks(native, thread, false, false);
    /* A warning means that the merge was not sure, or that a list broke. */
    if (!stacks || stacks->thread_count != 1 || stacks->warning || stacks->threads[0].unstable)
        return false;
    PRB_AUTO(json) json_t *merged = json_array();
    pthread_mutex_lock(&native->lock);
    size_t added = merged ? lay_over(native, &stacks->threads[0], frames, merged) : 0;
    pthread_mutex_unlock(&native->lock);
    if (!added)
        return false;
    json_object_set_new(stack, "totalFrames", json_integer((json_int_t)json_array_size(merged)));
    json_object_set(stack, "stackFrames", merged);
    return true;
}

/* ---- threads ---- */

static json_t *find_thread(const json_t *list, pid_t tid)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (json_integer_value(json_object_get(item, "id")) == tid)
            return item;
    }
    return NULL;
}

static bool has_ours(const struct prb_thread *thread)
{
    for (size_t i = 0; i < thread->frame_count; i++)
        if (is_ours(&thread->frames[i]))
            return true;
    return false;
}

/* Without its arguments, and not too long to read. */
static json_t *place_text(const char *name)
{
    size_t len = strcspn(name, "(");
    len = len ? len : strlen(name);
    return json_pack("s%", name, len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES);
}

json_t *prb_dap_native_places(struct prb_dap_native *native, bool all)
{
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = take_stacks(native, 0, true, !all);
    json_t *list = stacks ? json_array() : NULL;
    for (size_t i = 0; stacks && i < stacks->thread_count; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        const char *place = prb_dap_native_place(thread);
        if (!thread->os_thread_id || (!thread->has_python && has_ours(thread)))
            continue;
        json_t *item = json_pack("{s:i, s:o, s:b}", "id", (int)thread->os_thread_id, "name",
                                 prb_dap_text(thread->name ? thread->name : "native thread"),
                                 "python", thread->has_python);
        if (item && place)
            json_object_set_new(item, "native", place_text(place));
        json_array_append_new(list, item);
    }
    return list;
}

void prb_dap_native_add_places(const json_t *places, json_t *threads, bool all)
{
    json_t *list = json_object_get(threads, "threads"), *one;
    size_t i;
    json_array_foreach(places, i, one)
    {
        json_t *place = json_object_get(one, "native");
        json_t *known = find_thread(list, (pid_t)json_integer_value(json_object_get(one, "id")));
        if (!known && all && !json_is_true(json_object_get(one, "python")))
            json_array_append_new(list, json_copy(one));
        if (known && place && !json_is_true(json_object_get(known, "parked")))
            json_object_set(known, "native", place);
    }
}
