/*
 * The calling thread's Python frames, by the layout of its version (lib/py/layout/), as lib/py/walk.c
 * reads them from outside.  A thread's own frames do not move while it allocates, so they are read
 * once, and directly: that the layout fits is proven before, on frames that are read through the
 * kernel.  No object is changed, none is called.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "inject/probe/libc.h"
#include "inject/probe/memory/memory.h"
#include "inject/probe/python/api.h"
#include "py/layout/layout.h"

#define WALK_MAX 400 /* frames, shims among them, of one walk */
#define THREADED "free-threading build"

static struct {
    bool ready;
    struct prb_layout layout;
    void *(*this_thread)(void);     /* the thread state that this thread has, with the GIL or not */
    void *(*thread_with_gil)(void); /* the one that has the GIL, or runs in this thread */
} found;

struct walk {
    bool proving; /* read through the kernel: nothing is known to be right yet */
    const struct prb_layout *layout;
};

static bool read_at(const struct walk *walk, uint64_t address, void *out, size_t size)
{
    if (!walk->proving) {
        memcpy(out, (const void *)(uintptr_t)address, size);
        return true;
    }
    struct iovec mine = {out, size}, there = {(void *)(uintptr_t)address, size};
    return process_vm_readv(getpid(), &mine, 1, &there, 1, 0) == (ssize_t)size;
}

/* A field of the struct at an address, 0 where the layout has none. */
static bool field(const struct walk *walk, uint64_t address, enum prb_field field, uint64_t *out)
{
    int32_t offset = walk->layout->offset[field];
    unsigned width = prb_field_width(field);
    *out = 0;
    return offset == PRB_ABSENT ||
           read_at(walk, address + (uint64_t)(int64_t)offset, out, width ? width : 8);
}

/* The bytecode that the frame runs: of a free-threaded build a copy of its thread. */
static bool bytecode(const struct walk *walk, uint64_t frame, uint64_t code, uint64_t *out)
{
    uint64_t index, array, size, copy;
    *out = code + (uint64_t)PRB_OFF(walk->layout, code, bytecode);
    if (!field(walk, frame, PRB_F_frame_tlbc_index, &index))
        return false;
    if (!index || !PRB_HAS(walk->layout, code, tlbc))
        return true;
    if (!field(walk, code, PRB_F_code_tlbc, &array) || !array || !read_at(walk, array, &size, 8) ||
        index >= size)
        return array == 0;
    bool ok = read_at(walk, array + 8 + 8 * index, &copy, 8);
    *out = ok && copy ? copy : *out;
    return ok;
}

/* Bytes from the start of the code; -1: not begun. */
static bool instruction(const struct walk *walk, uint64_t frame, uint64_t code, int32_t *out)
{
    const struct prb_layout *layout = walk->layout;
    uint64_t at = frame + (uint64_t)PRB_OFF(layout, frame, instr), start, here;
    *out = -1;
    if (PRB_IS(layout, instr, LASTI_BYTES) || PRB_IS(layout, instr, LASTI_UNITS)) {
        if (!read_at(walk, at, out, 4))
            return false;
        bool units = PRB_IS(layout, instr, LASTI_UNITS);
        *out = *out < 0 || *out > INT32_MAX / 2 ? -1 : units ? *out * 2 : *out;
        return true;
    }
    if (!read_at(walk, at, &here, 8) || !bytecode(walk, frame, code, &start))
        return false;
    if (here >= start && here - start <= INT32_MAX)
        *out = (int32_t)(here - start);
    return true;
}

static bool check_of(const struct walk *walk, uint64_t code, uint32_t *out)
{
    uint64_t words[] = {
#define F(field_) 0,
        PRB_CODE_CHECK_FIELDS(F)
#undef F
    };
    static const enum prb_field fields[] = {
#define F(field_) PRB_F_code_##field_,
        PRB_CODE_CHECK_FIELDS(F)
#undef F
    };
    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!field(walk, code, fields[i], &words[i]))
            return false;
    *out = prb_code_check(words, sizeof words / sizeof *words);
    return true;
}

/* Whether a frame has no Python of its own: it only bounds a call. */
static bool is_shim(const struct walk *walk, uint64_t frame, bool *out)
{
    const struct prb_layout *layout = walk->layout;
    uint64_t owner;
    *out = false;
    if (!PRB_HAS(layout, frame, owner))
        return true;
    if (!field(walk, frame, PRB_F_frame_owner, &owner))
        return false;
    *out = (int)owner == PRB_NUM(layout, owner_interpreter) ||
           (int)owner == PRB_NUM(layout, owner_cstack);
    return true;
}

static bool first_frame(const struct walk *walk, uint64_t thread, uint64_t *out)
{
    uint64_t cframe;
    if (!PRB_IS(walk->layout, frame_chain, CFRAME))
        return field(walk, thread, PRB_F_thread_frame, out);
    return field(walk, thread, PRB_F_thread_cframe, &cframe) && cframe &&
           field(walk, cframe, PRB_F_cframe_current_frame, out);
}

/* False: something could not be read, or the chain is longer than any is. */
static bool follow(const struct walk *walk, uint64_t thread, struct prb_site_frame *out,
                   uint32_t *count_out, bool *cut_out)
{
    const struct prb_layout *layout = walk->layout;
    uint64_t mask =
        PRB_IS(layout, reference, TAGGED) ? (uint64_t)PRB_NUM(layout, reference_mask) : 0;
    uint64_t frame;
    uint32_t count = 0;
    *count_out = 0;
    if (!first_frame(walk, thread, &frame))
        return false;
    for (unsigned steps = 0; frame && steps < WALK_MAX; steps++) {
        uint64_t code;
        bool shim;
        if (!is_shim(walk, frame, &shim))
            return false;
        if (!shim) {
            if (count == PRB_SITE_FRAMES_MAX) {
                *cut_out = true;
                break;
            }
            struct prb_site_frame *one = &out[count];
            if (!field(walk, frame, PRB_F_frame_code, &code) || !(code &= ~mask) ||
                !instruction(walk, frame, code, &one->instruction) ||
                !check_of(walk, code, &one->check))
                return false;
            one->code = code;
            *count_out = ++count;
        }
        if (!field(walk, frame, PRB_F_frame_previous, &frame))
            return false;
    }
    return true;
}

uint32_t prb_memory_frames(bool python, struct prb_site_frame *out, bool *cut_out)
{
    const struct walk walk = {.layout = &found.layout};
    uint32_t count = 0;
    if (!__atomic_load_n(&found.ready, __ATOMIC_ACQUIRE))
        return 0;
    void *thread = python ? found.thread_with_gil() : found.this_thread();
    if (thread)
        follow(&walk, (uintptr_t)thread, out, &count, cut_out);
    return count;
}

/* ---- finding it ---- */

static bool find_layout(const struct prb_py_api *py, struct prb_error *err)
{
    struct prb_py *version = py->PySys_GetObject("hexversion");
    long number = version ? py->PyLong_AsLong(version) : 0;
    bool threaded = py->Py_GetVersion && strstr(py->Py_GetVersion(), THREADED);
    return prb_layout_find((uint32_t)number, threaded, &found.layout, err);
}

static struct {
    uint32_t count;
    struct prb_site_frame first;
} proof;

/* Called by the code below. */
static struct prb_py *walk_here(struct prb_py *self, struct prb_py *args)
{
    (void)self, (void)args;
    const struct prb_py_api *py = prb_py_api(NULL);
    const struct walk walk = {.proving = true, .layout = &found.layout};
    struct prb_site_frame frames[PRB_SITE_FRAMES_MAX];
    bool cut;
    void *thread = found.thread_with_gil();
    proof.count = 0;
    if (thread == found.this_thread() &&
        !follow(&walk, (uintptr_t)thread, frames, &proof.count, &cut))
        proof.count = 0;
    proof.first = frames[0];
    if (!py)
        return NULL;
    py->Py_IncRef(py->none);
    return py->none;
}

/* A frame of ours is the innermost one, and where the layout says. */
static bool prove(const struct prb_py_api *py, struct prb_error *err)
{
    static struct prb_py_method method = {"here", walk_here, PRB_PY_VARARGS, ""};
    PRB_AUTO(prb_py)
    struct prb_py *code = py->Py_CompileString("here()", "<probing>", PRB_PY_FILE_INPUT);
    PRB_AUTO(prb_py) struct prb_py *space = py->PyDict_New();
    PRB_AUTO(prb_py) struct prb_py *here = py->PyCFunction_NewEx(&method, NULL, NULL);
    bool ok = code && space && here &&
              py->PyDict_SetItemString(space, "__builtins__", py->PyEval_GetBuiltins()) == 0 &&
              py->PyDict_SetItemString(space, "here", here) == 0;
    proof.count = 0;
    PRB_AUTO(prb_py) struct prb_py *done = ok ? py->PyEval_EvalCode(code, space, space) : NULL;
    if (!done) {
        py->PyErr_Clear();
        return prb_fail(err, PRB_UNSUPPORTED, "no Python could be run to look at its frame");
    }
    if (!proof.count || proof.first.code != (uintptr_t)code || proof.first.instruction < 0)
        return prb_fail(err, PRB_UNSUPPORTED,
                        "the frames of this interpreter are not where CPython %s has them",
                        found.layout.name);
    return true;
}

bool prb_memory_frames_find(const struct prb_py_api *py, struct prb_error *err)
{
    if (found.ready)
        return true;
    if (!py->PyGILState_GetThisThreadState ||
        (!py->PyThreadState_GetUnchecked && !py->_PyThreadState_UncheckedGet))
        return prb_fail(err, PRB_UNSUPPORTED, "this interpreter does not say which thread runs");
    found.this_thread = py->PyGILState_GetThisThreadState;
    found.thread_with_gil = py->PyThreadState_GetUnchecked ? py->PyThreadState_GetUnchecked
                                                           : py->_PyThreadState_UncheckedGet;
    if (!find_layout(py, err) || !prove(py, err))
        return false;
    __atomic_store_n(&found.ready, true, __ATOMIC_RELEASE);
    return true;
}
