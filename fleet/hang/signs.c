/* What a thread is at, by the functions on its stack: waits.def. */
#include <ctype.h>
#include <string.h>

#include "fleet/hang/evidence.h"

enum where { FILE_, FUNCTION_, SYMBOL_, SPIN_ };

static const struct sign {
    enum prb_hang_kind kind;
    enum where where;
    const char *text;
} signs[] = {
#define SIGN(KIND, where, text) {PRB_HANG_##KIND, where##_, text},
#include "fleet/hang/waits.def"
#undef SIGN
};

static const struct {
    const char *name, *text;
} kinds[] = {
#define HANG_KIND(NAME, name, text) {name, text},
#include "fleet/hang/kinds.def"
#undef HANG_KIND
};

const char *prb_hang_kind_name(enum prb_hang_kind kind)
{
    return (unsigned)kind < PRB_HANG_KINDS ? kinds[kind].name : "unknown";
}

const char *prb_hang_kind_text(enum prb_hang_kind kind)
{
    return (unsigned)kind < PRB_HANG_KINDS ? kinds[kind].text : "unknown";
}

static bool is_at(const struct prb_frame *frame, const struct sign *sign)
{
    bool python = frame->kind == PRB_FRAME_PYTHON;
    if (frame->kind != PRB_FRAME_NATIVE && !python)
        return false;
    if (python != (sign->where == FILE_ || sign->where == FUNCTION_))
        return false;
    if (sign->where == FILE_)
        return frame->filename && strstr(frame->filename, sign->text);
    if (sign->where == FUNCTION_)
        return frame->filename && strstr(frame->filename, "threading.py") && frame->name &&
               strcmp(frame->name, sign->text) == 0;
    return frame->name && strstr(frame->name, sign->text);
}

static const struct sign *sign_of(const struct prb_thread *thread)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        for (size_t k = 0; k < thread->frame_count; k++)
            if (is_at(&thread->frames[k], &signs[i]))
                return &signs[i];
    return NULL;
}

enum prb_hang_kind prb_hang_kind_of(const struct prb_thread *thread, bool *spins)
{
    const struct sign *sign = sign_of(thread);
    *spins = false;
    if (!sign)
        return PRB_HANG_RUNNING;
    for (size_t i = 0; i < sizeof signs / sizeof *signs && !*spins; i++)
        for (size_t k = 0; signs[i].where == SPIN_ && k < thread->frame_count && !*spins; k++)
            *spins = is_at(&thread->frames[k], &signs[i]);
    return sign->kind;
}

static bool is_own(const struct prb_frame *frame)
{
    static const char *const others[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                         "/lib64/python"};
    if (frame->kind != PRB_FRAME_PYTHON || !frame->filename || frame->filename[0] == '<')
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(frame->filename, others[i]))
            return false;
    return true;
}

const struct prb_frame *prb_hang_own_frame(const struct prb_thread *thread)
{
    for (size_t i = 0; i < thread->frame_count; i++)
        if (is_own(&thread->frames[i]))
            return &thread->frames[i];
    for (size_t i = 0; i < thread->frame_count; i++)
        if (thread->frames[i].kind == PRB_FRAME_PYTHON)
            return &thread->frames[i];
    return NULL;
}

/* The outermost function of torch's own that was called: "all_reduce", not the decorator around it. */
static const char *python_operation(const struct prb_thread *thread)
{
    const char *found = NULL;
    for (size_t i = 0; i < thread->frame_count; i++) {
        const struct prb_frame *frame = &thread->frames[i];
        if (frame->kind == PRB_FRAME_PYTHON && frame->filename && frame->name &&
            strstr(frame->filename, "torch/distributed/distributed_c10d.py") &&
            frame->name[0] != '_')
            found = frame->name;
    }
    return found;
}

/* Of C++ symbols: "c10d::ops::allreduce_", "gloo::allreduce". */
static const char *native_operation(const struct prb_thread *thread)
{
    static const struct {
        const char *part, *name;
    } names[] = {
        {"reduce_scatter", "reduce_scatter"},
        {"allreduce", "all_reduce"},
        {"allgather", "all_gather"},
        {"alltoall", "all_to_all"},
        {"broadcast", "broadcast"},
        {"barrier", "barrier"},
        {"Reducer::", "all_reduce of gradients"},
    };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t i = 0; i < thread->frame_count; i++)
            if (thread->frames[i].kind == PRB_FRAME_NATIVE && thread->frames[i].name &&
                strstr(thread->frames[i].name, names[n].part))
                return names[n].name;
    return NULL;
}

void prb_hang_operation(const struct prb_thread *thread, char *out, size_t size)
{
    const char *name = python_operation(thread);
    if (!name)
        name = native_operation(thread);
    snprintf(out, size, "%s", name ? name : "");
}
