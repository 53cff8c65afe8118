/* This thread's frames, and the optimizer among their locals. */
#include "inject/probe/torch/frames.h"

#include <dlfcn.h>
#include <string.h>

#include "inject/probe/torch/torch.h"

#define WRAPPER_FRAMES 10 /* from the observer to the wrapper that opens the scope */
#define WRAPPER_LOCALS 8

static struct prb_layout layout;
static atomic_bool found;
static void *(*this_thread)(void); /* needs no GIL */
static const char *code_type;      /* PyCode_Type */

/* sys.abiflags of such a build has a t. */
static bool is_free_threaded(const struct prb_py_api *py)
{
    struct prb_py *flags = py->PySys_GetObject("abiflags");
    PRB_AUTO(prb_py) struct prb_py *bytes = flags ? py->PyUnicode_AsUTF8String(flags) : NULL;
    char *text;
    ptrdiff_t len;
    if (bytes && py->PyBytes_AsStringAndSize(bytes, &text, &len) == 0)
        return memchr(text, 't', (size_t)len) != NULL;
    py->PyErr_Clear();
    return false;
}

/* In the library that python/api.h's functions are of, or the program itself. */
static void *symbol(const struct prb_py_api *py, const char *name)
{
    Dl_info info;
    void *function, *handle = NULL;
    memcpy(&function, &py->Py_IsInitialized, sizeof function);
    if (dladdr(function, &info) && info.dli_fname)
        handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    void *at = dlsym(handle ? handle : RTLD_DEFAULT, name);
    if (handle)
        dlclose(handle); /* it stays loaded: NOLOAD only counted it */
    return at;
}

bool prb_torch_frames_find(const struct prb_py_api *py, struct prb_error *err)
{
    struct prb_py *version = py->PySys_GetObject("hexversion");
    if (found)
        return true;
    void *state = symbol(py, "PyGILState_GetThisThreadState");
    code_type = symbol(py, "PyCode_Type");
    if (!version || !state || !code_type)
        return prb_fail(err, PRB_UNSUPPORTED, "the interpreter's frames cannot be read");
    memcpy(&this_thread, &state, sizeof this_thread);
    if (!prb_layout_find((uint32_t)py->PyLong_AsLong(version), is_free_threaded(py), &layout, err))
        return false;
    found = true;
    return true;
}

const struct prb_layout *prb_torch_layout(void) { return found ? &layout : NULL; }

/* ---- frames ---- */

static const char *pointer(const char *at, int32_t offset)
{
    return (const char *)(uintptr_t)prb_torch_word(at, offset);
}

/* A word of a frame that may have tags: the object, or NULL. */
static const char *object(uint64_t word)
{
    if (!PRB_IS(&layout, reference, TAGGED))
        return (const char *)(uintptr_t)word;
    uint64_t mask = (uint64_t)PRB_NUM(&layout, reference_mask), tag = word & mask;
    if (tag == (uint64_t)PRB_NUM(&layout, reference_integer) ||
        (PRB_NUM(&layout, reference_invalid) != PRB_NONE &&
         tag == (uint64_t)PRB_NUM(&layout, reference_invalid)))
        return NULL;
    return (const char *)(uintptr_t)(word & ~mask);
}

const char *prb_torch_frame(void)
{
    const char *thread = found ? this_thread() : NULL;
    if (!thread)
        return NULL;
    if (!PRB_IS(&layout, frame_chain, CFRAME))
        return pointer(thread, PRB_OFF(&layout, thread, frame));
    const char *cframe = pointer(thread, PRB_OFF(&layout, thread, cframe));
    return cframe ? pointer(cframe, PRB_OFF(&layout, cframe, current_frame)) : NULL;
}

const char *prb_torch_frame_caller(const char *frame)
{
    return pointer(frame, PRB_OFF(&layout, frame, previous));
}

const char *prb_torch_frame_code(const char *frame)
{
    const char *code = object(prb_torch_word(frame, PRB_OFF(&layout, frame, code)));
    if (!code || pointer(code, PRB_OFF(&layout, object, type)) != code_type)
        return NULL;
    return code;
}

static unsigned number(const char *at, int32_t offset)
{
    int value;
    memcpy(&value, at + offset, sizeof value);
    return value < 0 ? 0 : (unsigned)value;
}

static unsigned items(const char *tuple)
{
    return tuple ? (unsigned)prb_torch_word(tuple, PRB_OFF(&layout, tuple, size)) : 0;
}

unsigned prb_torch_frame_count(const char *code)
{
    if (PRB_IS(&layout, variables, LOCALSPLUS))
        return number(code, PRB_OFF(&layout, code, nlocalsplus));
    return number(code, PRB_OFF(&layout, code, nlocals)) +
           items(pointer(code, PRB_OFF(&layout, code, cellvars))) +
           items(pointer(code, PRB_OFF(&layout, code, freevars)));
}

const char *prb_torch_frame_local(const char *frame, unsigned index)
{
    int32_t at = PRB_OFF(&layout, frame, localsplus) + (int32_t)(index * sizeof(void *));
    return object(prb_torch_word(frame, at));
}

/* ---- the optimizer ---- */

static bool is_of_class(const char *value, const char *name, size_t len)
{
    const char *type = pointer(value, PRB_OFF(&layout, object, type));
    const char *there = pointer(type, PRB_OFF(&layout, type, name));
    return strncmp(there, name, len) == 0 && there[len] == '\0';
}

/* "Optimizer.step#AdamW.step" names the class; the wrapper that opened the scope has it as self
 * (torch/optim/optimizer.py, profile_hook_step and zero_grad). */
uintptr_t prb_torch_frame_self(const char *label)
{
    const char *name = label ? strchr(label, '#') : NULL;
    const char *end = name ? strrchr(name, '.') : NULL;
    if (!end)
        return 0;
    size_t len = (size_t)(end - ++name), looked = 0;
    for (const char *frame = prb_torch_frame(); frame && looked < WRAPPER_FRAMES;
         frame = prb_torch_frame_caller(frame), looked++) {
        const char *code = prb_torch_frame_code(frame);
        unsigned count = code ? prb_torch_frame_count(code) : 0;
        for (unsigned i = 0; i < count && i < WRAPPER_LOCALS; i++) {
            const char *value = prb_torch_frame_local(frame, i);
            if (value && is_of_class(value, name, len))
                return (uintptr_t)value;
        }
    }
    return 0;
}
