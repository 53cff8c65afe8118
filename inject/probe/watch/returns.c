/*
 * Returns of watched functions, from 3.12 on: sys.monitoring (PEP 669).  Each code object tells once
 * that it starts, and is then not called for again; that of a watched function is followed from then
 * on, by local events of its returns.
 */
#include "inject/probe/torch/frames.h"
#include "inject/probe/watch/watch.h"

#include <dlfcn.h>
#include <string.h>

#define TOOL_IDS 6 /* Include/cpython/monitoring.h: PY_MONITORING_TOOL_IDS less CPython's own */
#define FRAMES 4   /* from the hook's to the one that returns */
#define THREADS_MAX 4096
#define DEPTH_MAX 1000
#define LAYOUT (&prb_watch_facts.layout)

enum event { PY_START, PY_RESUME, PY_RETURN, PY_YIELD, EVENTS };
static const char *const event_names[EVENTS] = {"PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD"};

static struct {
    struct prb_py *module; /* sys.monitoring; NULL: not begun */
    struct prb_py *disable;
    int id;
    long numbers[EVENTS];
} monitoring;

static struct prb_py *call(const struct prb_py_api *py, const char *name, struct prb_py *args)
{
    PRB_AUTO(prb_py) struct prb_py *taken = args;
    PRB_AUTO(prb_py)
    struct prb_py *function = args ? py->PyObject_GetAttrString(monitoring.module, name) : NULL;
    return function ? py->PyObject_CallObject(function, args) : NULL;
}

static bool done(struct prb_py *result)
{
    prb_py_drop(result);
    return result;
}

/* name(id, object, number), name(id, number, after) or name(id, number) */
static bool tell(const struct prb_py_api *py, const char *name, struct prb_py *before, long number,
                 struct prb_py *after)
{
    PRB_AUTO(prb_py) struct prb_py *id = py->PyLong_FromLong(monitoring.id);
    PRB_AUTO(prb_py) struct prb_py *value = py->PyLong_FromLong(number);
    if (!id || !value)
        return false;
    struct prb_py *args = before  ? py->PyTuple_Pack(3, id, before, value)
                          : after ? py->PyTuple_Pack(3, id, value, after)
                                  : py->PyTuple_Pack(2, id, value);
    return done(call(py, name, args));
}

static bool follow_code(const struct prb_py_api *py, struct prb_py *code)
{
    return tell(py, "set_local_events", code,
                monitoring.numbers[PY_RETURN] | monitoring.numbers[PY_YIELD], NULL);
}

/* ---- hooks ---- */

static struct prb_py *on_start(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    (void)self;
    if (!py || count < 2)
        return prb_py_nothing();
    if (monitoring.module && prb_watch_knows((const char *)args[0]) && !follow_code(py, args[0]))
        py->PyErr_Clear();
    struct prb_py *answer = monitoring.disable ? monitoring.disable : py->none;
    py->Py_IncRef(answer);
    return answer;
}

static struct prb_py *on_return(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    (void)self;
    if (!py || count < 2)
        return prb_py_nothing();
    const char *code = (const char *)args[0], *frame = prb_torch_frame();
    for (int i = 0; frame && i < FRAMES && prb_torch_frame_code(frame) != code; i++)
        frame = prb_torch_frame_caller(frame);
    if (frame && prb_torch_frame_code(frame) == code && prb_watch_knows(code))
        prb_watch_returned(frame, code);
    py->Py_IncRef(py->none);
    return py->none;
}

static struct {
    struct prb_py_method method;
    struct prb_py *function; /* for ever: CPython uses it borrowed */
} hooks[EVENTS] = {
#define HOOK(name)                                                                                 \
    {{#name, (prb_py_function)(void (*)(void))name, PRB_PY_FASTCALL, "of probing's watch"}, NULL}
    HOOK(on_start),
    HOOK(on_start),
    HOOK(on_return),
    HOOK(on_return),
};

static bool set_hooks(const struct prb_py_api *py, bool in)
{
    for (int i = 0; i < EVENTS; i++) {
        if (!hooks[i].function)
            hooks[i].function = py->PyCFunction_NewEx(&hooks[i].method, NULL, NULL);
        struct prb_py *function = in ? hooks[i].function : py->none;
        if (!function || !tell(py, "register_callback", NULL, monitoring.numbers[i], function))
            return false;
    }
    return true;
}

/* ---- functions that run already ---- */

static void follow_running(const struct prb_py_api *py)
{
    void *(*next)(void *) = NULL;
    void *(*first)(void *) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "PyThreadState_Next");
    memcpy(&next, &symbol, sizeof next);
    symbol = dlsym(RTLD_DEFAULT, "PyInterpreterState_ThreadHead");
    memcpy(&first, &symbol, sizeof first);
    if (!next || !first || !py->PyInterpreterState_Head)
        return;
    char *thread = first(py->PyInterpreterState_Head());
    for (int i = 0; thread && i < THREADS_MAX; i++, thread = next(thread)) {
        const char *frame;
        if (PRB_IS(LAYOUT, frame_chain, CFRAME)) {
            const char *cframe =
                (const char *)(uintptr_t)prb_torch_word(thread, PRB_OFF(LAYOUT, thread, cframe));
            frame = cframe ? (const char *)(uintptr_t)prb_torch_word(
                                 cframe, PRB_OFF(LAYOUT, cframe, current_frame))
                           : NULL;
        } else {
            frame = (const char *)(uintptr_t)prb_torch_word(thread, PRB_OFF(LAYOUT, thread, frame));
        }
        for (int depth = 0; frame && depth < DEPTH_MAX; depth++) {
            const char *code = prb_torch_frame_code(frame);
            if (code && prb_watch_knows(code) && !follow_code(py, (struct prb_py *)code))
                py->PyErr_Clear();
            frame = prb_torch_frame_caller(frame);
        }
    }
}

/* ---- begin and end ---- */

static bool read_numbers(const struct prb_py_api *py)
{
    PRB_AUTO(prb_py)
    struct prb_py *space = py->PyObject_GetAttrString(monitoring.module, "events");
    for (int i = 0; space && i < EVENTS; i++) {
        PRB_AUTO(prb_py) struct prb_py *number = py->PyObject_GetAttrString(space, event_names[i]);
        if (!number)
            return false;
        monitoring.numbers[i] = py->PyLong_AsLong(number);
    }
    monitoring.disable = py->PyObject_GetAttrString(monitoring.module, "DISABLE");
    return space && monitoring.disable;
}

/* 0 is debuggers', 1 and 2 are for coverage and profilers, 3 is what our debugger takes first. */
static bool take_id(const struct prb_py_api *py)
{
    static const int order[TOOL_IDS] = {4, 5, 3, 2, 1, 0};
    PRB_AUTO(prb_py) struct prb_py *name = py->PyUnicode_DecodeUTF8("probing watch", 13, NULL);
    for (int i = 0; name && i < TOOL_IDS; i++) {
        PRB_AUTO(prb_py) struct prb_py *id = py->PyLong_FromLong(order[i]);
        if (id && done(call(py, "use_tool_id", py->PyTuple_Pack(2, id, name)))) {
            monitoring.id = order[i];
            return true;
        }
        py->PyErr_Clear(); /* in use */
    }
    return false;
}

void prb_watch_monitoring_end(const struct prb_py_api *py)
{
    PRB_AUTO(prb_py) struct prb_py *module = monitoring.module;
    PRB_AUTO(prb_py) struct prb_py *disable = monitoring.disable;
    if (!module)
        return;
    if (monitoring.id >= 0) {
        tell(py, "set_events", NULL, 0, NULL);
        set_hooks(py, false);
        /* Local events of this id end with it (3.14); before, their hook is gone. */
        PRB_AUTO(prb_py) struct prb_py *id = py->PyLong_FromLong(monitoring.id);
        if (id)
            done(call(py, "free_tool_id", py->PyTuple_Pack(1, id)));
        py->PyErr_Clear();
    }
    monitoring.module = monitoring.disable = NULL;
}

static bool is_usable(const struct prb_py_api *py, struct prb_error *err)
{
    struct prb_py *enabled = py->PySys_GetObject("_is_gil_enabled");
    PRB_AUTO(prb_py)
    struct prb_py *with_gil = enabled ? py->PyObject_CallObject(enabled, NULL) : NULL;
    if (with_gil && !py->PyObject_IsTrue(with_gil))
        return prb_fail(err, PRB_UNSUPPORTED, "this interpreter runs without a GIL");
    return true;
}

bool prb_watch_monitoring_begin(const struct prb_py_api *py, struct prb_error *err)
{
    if (monitoring.module) {
        follow_running(py);
        return done(call(py, "restart_events", py->PyTuple_Pack(0)));
    }
    struct prb_py *module = py->PySys_GetObject("monitoring");
    if (!module)
        return prb_fail(err, PRB_NOT_FOUND, "this interpreter has no sys.monitoring");
    if (!is_usable(py, err))
        return false;
    py->Py_IncRef(module);
    monitoring.module = module;
    monitoring.id = -1;
    bool ok = read_numbers(py) && take_id(py) && set_hooks(py, true);
    if (ok)
        follow_running(py);
    ok = ok && tell(py, "set_events", NULL,
                    monitoring.numbers[PY_START] | monitoring.numbers[PY_RESUME], NULL);
    if (ok)
        return true;
    py->PyErr_Clear();
    prb_watch_monitoring_end(py);
    return prb_fail(err, PRB_BUSY, "no tool id of sys.monitoring is free");
}
