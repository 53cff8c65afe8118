/*
 * What a signal handler of the program raises while code of ours runs on its thread (Ctrl-C, an
 * alarm, SIGTERM to sys.exit): it is the program's.  It is taken out of our code, kept with the
 * thread, and raised in the program when the thread goes on.
 *
 * Its traceback tells it from failures of ours and of what clients evaluate: it passes a frame of
 * a handler (signal.getsignal()).  CPython's own handler of Ctrl-C has no frame, but
 * nothing else raises KeyboardInterrupt: our interruptions are of a class of their own.
 */
#include "inject/probe/debug/session.h"

#include <string.h>

#define SIGNALS 65      /* Linux: 1 to 64 */
#define WRAPPED_MAX 8   /* partials of methods of ... */
#define TRACE_MAX 10000 /* entries of a traceback */

static struct prb_py *attribute(const struct prb_py_api *py, struct prb_py *of, const char *name)
{
    struct prb_py *found = py->PyObject_GetAttrString(of, name);
    if (!found)
        py->PyErr_Clear();
    return found;
}

/* ---- the code of handlers ---- */

/* A new reference, or NULL: functions, methods, partials and objects with __call__. */
static struct prb_py *code_of(const struct prb_py_api *py, struct prb_py *handler)
{
    py->Py_IncRef(handler);
    PRB_AUTO(prb_py) struct prb_py *one = handler;
    for (int depth = 0; one && depth < WRAPPED_MAX; depth++) {
        struct prb_py *code = attribute(py, one, "__code__");
        if (code)
            return code;
        struct prb_py *inner = attribute(py, one, "__func__");
        if (!inner)
            inner = attribute(py, one, "func"); /* functools.partial */
        if (!inner) {
            PRB_AUTO(prb_py) struct prb_py *type = py->PyObject_Type(one);
            inner = type ? attribute(py, type, "__call__") : NULL;
        }
        prb_py_drop(one);
        one = inner;
    }
    return NULL;
}

/* New references in codes; how many. */
static size_t handlers(const struct prb_py_api *py, struct prb_py *codes[SIGNALS])
{
    struct prb_py *module = py->PyDict_GetItemString(py->PyImport_GetModuleDict(), "_signal");
    PRB_AUTO(prb_py) struct prb_py *get = module ? attribute(py, module, "getsignal") : NULL;
    size_t count = 0;
    for (long number = 1; get && number < SIGNALS; number++) {
        PRB_AUTO(prb_py) struct prb_py *py_number = py->PyLong_FromLong(number);
        PRB_AUTO(prb_py) struct prb_py *args = py_number ? py->PyTuple_Pack(1, py_number) : NULL;
        PRB_AUTO(prb_py) struct prb_py *handler = args ? py->PyObject_CallObject(get, args) : NULL;
        codes[count] = handler && handler != py->none ? code_of(py, handler) : NULL;
        if (codes[count])
            count++;
        py->PyErr_Clear();
    }
    return count;
}

/* The entry of a traceback where a handler begins, a new reference, or NULL. */
static struct prb_py *handlers_entry(const struct prb_py_api *py, struct prb_py *trace)
{
    struct prb_py *codes[SIGNALS];
    size_t count = trace ? handlers(py, codes) : 0;
    PRB_AUTO(prb_py) struct prb_py *entry = trace;
    bool found = false;
    if (entry)
        py->Py_IncRef(entry);
    for (int i = 0; count && entry && entry != py->none && i < TRACE_MAX; i++) {
        PRB_AUTO(prb_py) struct prb_py *frame = attribute(py, entry, "tb_frame");
        PRB_AUTO(prb_py) struct prb_py *code = frame ? attribute(py, frame, "f_code") : NULL;
        for (size_t k = 0; k < count && !found; k++)
            found = codes[k] == code;
        if (found)
            break;
        struct prb_py *next = attribute(py, entry, "tb_next");
        prb_py_drop(entry);
        entry = next;
    }
    for (size_t k = 0; k < count; k++)
        prb_py_drop(codes[k]);
    return found ? PRB_STEAL(entry) : NULL;
}

/* ---- whose an exception is ---- */

static bool is_exception(const struct prb_py_api *py, struct prb_py *value)
{
    return py->PyErr_GivenExceptionMatches(value, *py->exception);
}

/* The program's; entry_out: where its handler begins, a new reference, or NULL. */
static bool is_theirs(const struct prb_py_api *py, struct prb_py *value, struct prb_py *trace,
                      bool escaped, struct prb_py **entry_out)
{
    *entry_out = NULL;
    if (!value || py->PyErr_GivenExceptionMatches(value, prb_py_interruption(py)))
        return false;
    *entry_out = handlers_entry(py, trace);
    return *entry_out || py->PyErr_GivenExceptionMatches(value, *py->keyboard_interrupt) ||
           (escaped && !is_exception(py, value));
}

/* The first is kept, but what may end the program goes before what it may handle. */
static void keep(const struct prb_py_api *py, struct prb_debug_parked *parked, struct prb_py *value,
                 struct prb_py *entry)
{
    parked->pending_count++;
    if (parked->pending == value)
        return;
    if (parked->pending && (is_exception(py, value) || !is_exception(py, parked->pending)))
        return;
    /* What it passed of ours is nobody's business, and would be kept alive. */
    if (py->PyException_SetTraceback(value, entry ? entry : py->none) != 0)
        py->PyErr_Clear();
    if (parked->pending)
        py->PyException_SetContext(value, parked->pending); /* takes it */
    py->Py_IncRef(value);
    parked->pending = value;
}

bool prb_debug_keep_raised(const struct prb_py_api *py, struct prb_debug_parked *parked,
                           bool escaped)
{
    struct prb_py *type, *value, *trace;
    py->PyErr_Fetch(&type, &value, &trace);
    py->PyErr_NormalizeException(&type, &value, &trace);
    PRB_AUTO(prb_py) struct prb_py *entry = NULL;
    if (!is_theirs(py, value, trace, escaped, &entry)) {
        py->PyErr_Restore(type, value, trace);
        return false;
    }
    keep(py, parked, value, entry);
    prb_py_drop(type);
    prb_py_drop(value);
    prb_py_drop(trace);
    return true;
}

bool prb_debug_keep_caught(const struct prb_py_api *py, struct prb_debug_parked *parked,
                           struct prb_py *value)
{
    PRB_AUTO(prb_py) struct prb_py *trace = attribute(py, value, "__traceback__");
    PRB_AUTO(prb_py) struct prb_py *entry = NULL;
    bool theirs = is_theirs(py, value, trace, false, &entry);
    if (theirs && parked)
        keep(py, parked, value, entry);
    return theirs;
}

void prb_debug_withdraw(const struct prb_py_api *py, struct prb_debug_parked *parked)
{
    prb_py_withdraw(py, parked->ident);
    if (py->PyErr_Occurred() && !prb_debug_keep_raised(py, parked, true))
        py->PyErr_Clear();
}

void prb_debug_take_signals(const struct prb_py_api *py, struct prb_debug_parked *parked)
{
    if (py->PyErr_CheckSignals() == 0)
        return;
    struct prb_py *type, *value, *trace;
    py->PyErr_Fetch(&type, &value, &trace);
    py->PyErr_NormalizeException(&type, &value, &trace);
    if (value)
        keep(py, parked, value, trace);
    prb_py_drop(type);
    prb_py_drop(value);
    prb_py_drop(trace);
}

/* ---- its way to the program ---- */

bool prb_debug_raise_pending(const struct prb_py_api *py, struct prb_debug_parked *parked)
{
    struct prb_py *value = PRB_STEAL(parked->pending);
    if (!value)
        return true;
    PRB_AUTO(prb_py) struct prb_py *trace = attribute(py, value, "__traceback__");
    py->PyErr_Restore(py->PyObject_Type(value), value, trace != py->none ? PRB_STEAL(trace) : NULL);
    return false;
}

void prb_debug_chain(const struct prb_py_api *py, struct prb_py *context)
{
    struct prb_py *type, *value, *trace;
    py->PyErr_Fetch(&type, &value, &trace);
    py->PyErr_NormalizeException(&type, &value, &trace);
    PRB_AUTO(prb_py) struct prb_py *before = value ? py->PyException_GetContext(value) : NULL;
    if (context && context != value && !before) {
        py->Py_IncRef(context);
        py->PyException_SetContext(value, context);
    }
    py->PyErr_Restore(type, value, trace);
}
