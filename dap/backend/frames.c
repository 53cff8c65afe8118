/* Stacks of the library as JSON: see frames.h. */
#include "dap/backend/frames.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

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

/* Not in the standard library, nor in an installed package. */
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
        json_object_set_new(out, "module", prb_dap_text(prb_dap_base_name(frame->module)));
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

/* ---- where a thread is ---- */

/* Libraries whose functions only wait for others. */
static bool only_waits(const char *module)
{
    static const char *const names[] = {"libc.so", "libc-",   "libpthread", "ld-linux",
                                        "ld-musl", "libm.so", "librt",      "[vdso]"};
    const char *name = prb_dap_base_name(module);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return !*name;
}

/* Its outer functions only lead to the one that works. */
static bool is_interpreter(const char *module)
{
    const char *name = prb_dap_base_name(module);
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
    /* The library has no symbols: what it called in the C library says more than an address. */
    while (at > 0 && !is_named(&thread->frames[at]))
        at--;
    return is_named(&thread->frames[at]) ? thread->frames[at].name : NULL;
}
