/*
 * See native_frames.h.  Stands on prb_stacks_take's merge by anchors: what it is not sure of is
 * not used here.  One target is kept open for the session, so that symbols are read once.
 */
#include "dap/backend/live/native_frames.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define NAME_MAX_BYTES                                                                             \
    120 /* of a native function in a thread's name; C++ templates run to thousands */

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
        if (target && err)
            *err = (struct prb_error){.code = PRB_NOMEM, .text = "out of memory"};
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

/* ---- frames as JSON ---- */

json_t *prb_dap_text(const char *text)
{
    json_t *string = text ? json_string(text) : json_null();
    PRB_AUTO_FREE char *plain = string ? NULL : strdup(text);
    if (string || !plain)
        return string;
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 128)
            *c = '?';
    return json_string(plain);
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

/* Not a module of the interpreter's library, nor of an installed package. */
static bool is_own(const char *path)
{
    static const char *const others[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                         "/lib64/python"};
    if (!path || *path == '<')
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(path, others[i]))
            return false;
    return true;
}

static void set_place(json_t *out, const struct prb_frame *frame)
{
    json_object_set_new(out, "line", json_integer(frame->line > 0 ? frame->line : 0));
    json_object_set_new(out, "column", json_integer(frame->column >= 0 ? frame->column + 1 : 1));
    if (frame->end_line > 0 && frame->end_column >= 0) {
        json_object_set_new(out, "endLine", json_integer(frame->end_line));
        json_object_set_new(out, "endColumn", json_integer(frame->end_column + 1));
    }
    if (frame->filename && frame->line > 0)
        json_object_set_new(out, "path", prb_dap_text(frame->filename));
}

static void set_native(json_t *out, const struct prb_frame *frame)
{
    char address[24];
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)frame->code);
    json_object_set_new(out, "presentationHint", json_string("subtle"));
    json_object_set_new(out, "instructionPointerReference", json_string(address));
    if (frame->module)
        json_object_set_new(out, "module", prb_dap_text(base_name(frame->module)));
}

json_t *prb_dap_frame_json(const struct prb_frame *frame, json_int_t id)
{
    const char *name = frame->qualname ? frame->qualname : frame->name ? frame->name : "?";
    char broken[sizeof((struct prb_error *)0)->text + 40];
    if (frame->kind == PRB_FRAME_BROKEN) {
        snprintf(broken, sizeof broken, "the walk ended here: %s", name);
        name = broken;
    }
    json_t *out = json_pack("{s:I, s:o, s:b}", "id", id, "name", prb_dap_text(name), "own",
                            frame->kind == PRB_FRAME_PYTHON && is_own(frame->filename));
    if (!out)
        return NULL;
    set_place(out, frame);
    if (frame->kind == PRB_FRAME_NATIVE)
        set_native(out, frame);
    else if (frame->kind == PRB_FRAME_BROKEN)
        json_object_set_new(out, "presentationHint", json_string("label"));
    return out;
}

/* ---- where a thread is ---- */

/* Libraries whose functions only wait on behalf of others. */
static bool only_waits(const char *module)
{
    static const char *const names[] = {"libc.so", "libc-",   "libpthread", "ld-linux",
                                        "ld-musl", "libm.so", "librt",      "[vdso]"};
    const char *name = base_name(module);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return !*name;
}

/* Whose outer functions only lead to the one that does something. */
static bool is_interpreter(const char *module)
{
    const char *name = base_name(module);
    return strncmp(name, "libpython", 9) == 0 || strncmp(name, "python", 6) == 0;
}

static bool is_named(const struct prb_frame *frame)
{
    return frame->name && strncmp(frame->name, "0x", 2) != 0;
}

const char *prb_dap_native_place(const struct prb_thread *thread)
{
    size_t end = 0, at = 0;
    while (end < thread->frame_count && thread->frames[end].kind == PRB_FRAME_NATIVE)
        end++;
    if (!end || thread->gil == PRB_GIL_WAITING)
        return NULL;
    while (at < end && only_waits(thread->frames[at].module))
        at++;
    if (at == end)
        at = end - 1;
    const char *module = thread->frames[at].module;
    while (!is_interpreter(module) && at + 1 < end && thread->frames[at + 1].module &&
           strcmp(thread->frames[at + 1].module, module) == 0)
        at++;
    if (is_named(&thread->frames[at]))
        return thread->frames[at].name;
    /* A library without symbols: what it called of the C library tells more than an address. */
    while (at > 0 && !is_named(&thread->frames[at]))
        at--;
    return is_named(&thread->frames[at]) ? thread->frames[at].name : NULL;
}

/* Without arguments, and not longer than a reader reads. */
static json_t *place_text(const char *name)
{
    size_t len = strcspn(name, "(");
    len = len ? len : strlen(name);
    return json_pack("s%", name, len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES);
}

/* ---- matching ---- */

/* It may lie in a memory file, or as a copy with something before its name. */
static bool is_ours(const struct prb_frame *frame)
{
    return frame->kind == PRB_FRAME_NATIVE && strstr(base_name(frame->module), "libprobe.so");
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

/* The innermost frame's line may be told a moment earlier or later; no other can move. */
static bool same_frame(const struct prb_frame *frame, const json_t *told, bool innermost)
{
    const char *path = string_of(told, "path");
    bool file = !*path || strcmp(base_name(path), base_name(frame->filename)) == 0;
    bool line = json_integer_value(json_object_get(told, "line")) == frame->line;
    return file && (line || (innermost && same_name(frame, string_of(told, "name"))));
}

/* Index of the row that is the agent's innermost frame; thread->frame_count: the two differ.  Rows
 * further in are of something that the thread began since (a call that the debugger runs on it). */
static size_t align(const struct prb_thread *thread, const json_t *frames)
{
    size_t told = json_array_size(frames), at = thread->frame_count;
    while (told > 0 && at-- > 0) {
        const struct prb_frame *frame = &thread->frames[at];
        if (frame->kind == PRB_FRAME_BROKEN)
            return thread->frame_count;
        if (frame->kind != PRB_FRAME_PYTHON)
            continue;
        told--;
        if (!same_frame(frame, json_array_get(frames, told), told == 0))
            return thread->frame_count;
        if (told == 0)
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

/* Native rows [from, to) that stand between two frames of the program; none when one is the
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
    size_t told = json_array_size(frames), first = told ? align(thread, frames) : 0, added = 0;
    if (told && first == thread->frame_count)
        return 0;
    size_t from = told && python_further_in(thread, first) ? first : 0, next = 0;
    for (size_t i = from; i <= thread->frame_count; i++) {
        bool python = i < thread->frame_count && thread->frames[i].kind == PRB_FRAME_PYTHON;
        if (!python && i < thread->frame_count)
            continue;
        added += add_run(native, thread, from, i, out);
        if (python && next < told)
            json_array_append(out, json_array_get(frames, next++));
        from = i + 1;
    }
    return next == told ? added : 0;
}

static struct prb_stacks *look(struct prb_dap_native *native, pid_t thread, bool untouched,
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
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = look(native, thread, false, false);
    /* A warning is of a merge that was not sure, or of a list that broke. */
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

void prb_dap_stack_page(json_t *stack, json_int_t start, json_int_t levels)
{
    const json_t *frames = json_object_get(stack, "stackFrames");
    json_int_t count = (json_int_t)json_array_size(frames);
    json_t *page = json_array();
    start = start < 0 ? 0 : start;
    for (json_int_t i = start; i < count && (levels <= 0 || i - start < levels); i++)
        json_array_append(page, json_array_get(frames, (size_t)i));
    if (!json_object_get(stack, "totalFrames"))
        json_object_set_new(stack, "totalFrames", json_integer(count));
    json_object_set_new(stack, "stackFrames", page);
}

/* ---- threads ---- */

static json_t *told_thread(const json_t *list, pid_t tid)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) if (json_integer_value(json_object_get(item, "id")) ==
                                          tid) return item;
    return NULL;
}

static bool has_ours(const struct prb_thread *thread)
{
    for (size_t i = 0; i < thread->frame_count; i++)
        if (is_ours(&thread->frames[i]))
            return true;
    return false;
}

json_t *prb_dap_native_places(struct prb_dap_native *native, bool all)
{
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = look(native, 0, true, !all);
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

void prb_dap_native_tell(const json_t *places, json_t *threads, bool all)
{
    json_t *list = json_object_get(threads, "threads"), *one;
    size_t i;
    json_array_foreach(places, i, one)
    {
        json_t *place = json_object_get(one, "native");
        json_t *told = told_thread(list, (pid_t)json_integer_value(json_object_get(one, "id")));
        if (!told && all && !json_is_true(json_object_get(one, "python")))
            json_array_append_new(list, json_copy(one));
        if (told && place && !json_is_true(json_object_get(told, "parked")))
            json_object_set(told, "native", place);
    }
}
