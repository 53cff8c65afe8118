/*
 * The mechanism of CPython 3.12 and later: sys.monitoring (PEP 669).  Here is what is set in it,
 * and given back.
 */
#include "inject/probe/debug/monitoring/monitoring.h"

#include <stdint.h>
#include <string.h>

#define TOOL_IDS 6 /* Include/cpython/monitoring.h: PY_MONITORING_TOOL_IDS less CPython's own */

static const struct {
    const char *name;
    enum prb_debug_event event;
    bool global_only;
} events[PRB_MONITORING_COUNT] = {
#define E(name, event, global_only) {#name, event, global_only},
    PRB_MONITORING_EVENTS(E)
#undef E
};

struct prb_monitoring prb_monitoring;

/* ---- calls of sys.monitoring ---- */

static struct prb_py *call(const struct prb_py_api *py, const char *name, struct prb_py *args)
{
    PRB_AUTO(prb_py) struct prb_py *taken = args;
    PRB_AUTO(prb_py)
    struct prb_py *function = args ? py->PyObject_GetAttrString(prb_monitoring.module, name) : NULL;
    return function ? py->PyObject_CallObject(function, args) : NULL;
}

/* name(id, number), name(id, object, number) or name(id, number, object) */
static struct prb_py *args_of(const struct prb_py_api *py, int id, struct prb_py *before,
                              long number, struct prb_py *after)
{
    PRB_AUTO(prb_py) struct prb_py *py_id = py->PyLong_FromLong(id);
    PRB_AUTO(prb_py) struct prb_py *py_number = py->PyLong_FromLong(number);
    if (!py_id || !py_number)
        return NULL;
    if (before)
        return py->PyTuple_Pack(3, py_id, before, py_number);
    return after ? py->PyTuple_Pack(3, py_id, py_number, after)
                 : py->PyTuple_Pack(2, py_id, py_number);
}

static bool succeeded(struct prb_py *result)
{
    prb_py_drop(result);
    return result;
}

static bool set_local(const struct prb_py_api *py, enum prb_tool tool, struct prb_py *code,
                      long mask)
{
    return succeeded(
        call(py, "set_local_events", args_of(py, prb_monitoring.ids[tool], code, mask, NULL)));
}

static bool set_global(const struct prb_py_api *py, enum prb_tool tool, int mask)
{
    if (prb_monitoring.global[tool] == mask)
        return true;
    if (!succeeded(call(py, "set_events", args_of(py, prb_monitoring.ids[tool], NULL, mask, NULL))))
        return false;
    prb_monitoring.global[tool] = mask;
    return true;
}

/* ---- watched code ---- */

struct prb_watched *prb_monitoring_find(enum prb_tool tool, const struct prb_py *code)
{
    for (size_t i = 0; i < prb_monitoring.count[tool]; i++)
        if (prb_monitoring.watched[tool][i].code == code)
            return &prb_monitoring.watched[tool][i];
    return NULL;
}

static struct prb_watched *keep(const struct prb_py_api *py, enum prb_tool tool,
                                struct prb_py *code)
{
    struct prb_watched *found = prb_monitoring_find(tool, code);
    if (found || !PRB_GROW(prb_monitoring.watched[tool], prb_monitoring.count[tool],
                           prb_monitoring.cap[tool]))
        return found;
    py->Py_IncRef(code);
    found = &prb_monitoring.watched[tool][prb_monitoring.count[tool]++];
    *found = (struct prb_watched){.code = code};
    return found;
}

/* The reference is the caller's after. */
static struct prb_py *forget(enum prb_tool tool, struct prb_watched *one)
{
    struct prb_py *code = one->code;
    free(one->lines);
    *one = prb_monitoring.watched[tool][--prb_monitoring.count[tool]];
    return code;
}

static int compare(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* ---- begin and end ---- */

static bool usable(const struct prb_py_api *py, struct prb_error *err)
{
    struct prb_py *module = py->PySys_GetObject("monitoring");
    if (!module)
        return prb_fail(err, PRB_NOT_FOUND, "this interpreter has no sys.monitoring");
    struct prb_py *enabled = py->PySys_GetObject("_is_gil_enabled");
    PRB_AUTO(prb_py)
    struct prb_py *with_gil = enabled ? py->PyObject_CallObject(enabled, NULL) : NULL;
    if (with_gil && !py->PyObject_IsTrue(with_gil))
        return prb_fail(err, PRB_UNSUPPORTED,
                        "this interpreter runs without a GIL: it can be looked at, not stopped");
    return true;
}

static bool read_numbers(const struct prb_py_api *py)
{
    PRB_AUTO(prb_py)
    struct prb_py *space = py->PyObject_GetAttrString(prb_monitoring.module, "events");
    for (int i = 0; space && i < PRB_MONITORING_COUNT; i++) {
        PRB_AUTO(prb_py)
        struct prb_py *number = py->PyObject_GetAttrString(space, events[i].name);
        if (!number)
            return false;
        prb_monitoring.numbers[i] = py->PyLong_AsLong(number);
    }
    prb_monitoring.disable = py->PyObject_GetAttrString(prb_monitoring.module, "DISABLE");
    return space && prb_monitoring.disable;
}

/* A free tool id.  0 is debuggers', 1 and 2 are for coverage and profilers, 5 is CPython's. */
static bool take_id(const struct prb_py_api *py, int *id_out)
{
    static const int order[TOOL_IDS] = {3, 4, 0, 5, 2, 1};
    PRB_AUTO(prb_py) struct prb_py *name = py->PyUnicode_DecodeUTF8("probing", 7, NULL);
    for (int i = 0; name && i < TOOL_IDS; i++) {
        PRB_AUTO(prb_py) struct prb_py *id = py->PyLong_FromLong(order[i]);
        if (id && succeeded(call(py, "use_tool_id", py->PyTuple_Pack(2, id, name)))) {
            *id_out = order[i];
            return true;
        }
        py->PyErr_Clear(); /* in use */
    }
    return false;
}

static bool register_hook(const struct prb_py_api *py, const struct prb_monitoring_hook *hook,
                          struct prb_py *function)
{
    int id = prb_monitoring.ids[hook->tool];
    return function &&
           succeeded(call(py, "register_callback",
                          args_of(py, id, NULL, prb_monitoring.numbers[hook->event], function)));
}

static void end(const struct prb_py_api *py)
{
    for (int tool = 0; tool < PRB_TOOLS; tool++) {
        if (!prb_monitoring.module || prb_monitoring.ids[tool] < 0)
            continue;
        set_global(py, tool, 0);
        while (prb_monitoring.count[tool]) {
            struct prb_watched *last =
                &prb_monitoring.watched[tool][prb_monitoring.count[tool] - 1];
            PRB_AUTO(prb_py) struct prb_py *code = forget(tool, last);
            set_local(py, tool, code, 0);
            py->PyErr_Clear();
        }
        free(prb_monitoring.watched[tool]);
        prb_monitoring.watched[tool] = NULL;
        prb_monitoring.cap[tool] = 0;
    }
    for (const struct prb_monitoring_hook *hook = prb_monitoring_hooks; hook->method.name; hook++)
        if (prb_monitoring.module && prb_monitoring.ids[hook->tool] >= 0)
            register_hook(py, hook, py->none);
    for (int tool = 0; tool < PRB_TOOLS; tool++) {
        PRB_AUTO(prb_py) struct prb_py *id = py->PyLong_FromLong(prb_monitoring.ids[tool]);
        if (prb_monitoring.module && prb_monitoring.ids[tool] >= 0 && id)
            succeeded(call(py, "free_tool_id", py->PyTuple_Pack(1, id)));
        prb_monitoring.ids[tool] = -1;
    }
    py->PyErr_Clear();
    PRB_AUTO(prb_py) struct prb_py *module = PRB_STEAL(prb_monitoring.module);
    PRB_AUTO(prb_py) struct prb_py *disable = PRB_STEAL(prb_monitoring.disable);
    prb_monitoring.armed = false;
    prb_monitoring.exceptions = 0;
}

static bool begin(const struct prb_py_api *py, struct prb_error *err)
{
    prb_monitoring.module = py->PySys_GetObject("monitoring");
    py->Py_IncRef(prb_monitoring.module);
    prb_monitoring.ids[PRB_PLANTER] = prb_monitoring.ids[PRB_STEPPER] = -1;
    memset(prb_monitoring.global, 0, sizeof prb_monitoring.global);
    bool ok = read_numbers(py);
    if (ok && !(take_id(py, &prb_monitoring.ids[PRB_PLANTER]) &&
                take_id(py, &prb_monitoring.ids[PRB_STEPPER]))) {
        end(py);
        return prb_fail(err, PRB_BUSY, "no two tool ids of sys.monitoring are free");
    }
    for (struct prb_monitoring_hook *hook = prb_monitoring_hooks; ok && hook->method.name; hook++) {
        if (!hook->function)
            hook->function = py->PyCFunction_NewEx(&hook->method, NULL, NULL);
        ok = register_hook(py, hook, hook->function);
    }
    if (ok)
        return true;
    end(py);
    return prb_fail(err, PRB_UNSUPPORTED, "sys.monitoring of this interpreter is another");
}

/* ---- what is wanted ---- */

static long mask(unsigned wanted, bool global_only)
{
    long all = 0;
    for (int i = 0; i < PRB_MONITORING_COUNT; i++)
        if ((events[i].event & wanted) && (!global_only || events[i].global_only))
            all |= prb_monitoring.numbers[i];
    return all;
}

static bool update_stepper(const struct prb_py_api *py)
{
    unsigned stepped = 0;
    for (size_t i = 0; i < prb_monitoring.count[PRB_STEPPER]; i++)
        stepped |= prb_monitoring.watched[PRB_STEPPER][i].events;
    /* What a code object calls is other code. */
    unsigned everywhere = (stepped & (PRB_DEBUG_CALL | PRB_DEBUG_RESUME)) |
                          prb_monitoring.exceptions | (prb_monitoring.armed ? PRB_DEBUG_GATE : 0);
    long all = mask(everywhere, false) | mask(stepped, true);
    return set_global(py, PRB_STEPPER, (int)all);
}

static bool plant(const struct prb_py_api *py, struct prb_py *code, const int *lines, size_t count)
{
    struct prb_watched *one =
        count ? keep(py, PRB_PLANTER, code) : prb_monitoring_find(PRB_PLANTER, code);
    if (!one)
        return !count;
    /* Off first: what an event disabled at lines that count now is on again. */
    bool ok = set_local(py, PRB_PLANTER, code, 0);
    one = prb_monitoring_find(PRB_PLANTER, code);
    if (!one || !count) {
        prb_py_drop(one ? forget(PRB_PLANTER, one) : NULL);
        return ok;
    }
    int *kept = realloc(one->lines, count * sizeof *kept);
    if (!kept)
        return false;
    memcpy(kept, lines, count * sizeof *kept);
    qsort(kept, count, sizeof *kept, compare);
    one->lines = kept;
    one->count = count;
    return ok && set_local(py, PRB_PLANTER, code,
                           prb_monitoring.numbers[PRB_MONITORING_LINE] |
                               prb_monitoring.numbers[PRB_MONITORING_JUMP]);
}

static bool watch_new_code(const struct prb_py_api *py, bool on)
{
    long wanted = prb_monitoring.numbers[PRB_MONITORING_PY_START] |
                  prb_monitoring.numbers[PRB_MONITORING_PY_RESUME];
    bool was = prb_monitoring.global[PRB_PLANTER];
    if (on && !was && !succeeded(call(py, "restart_events", py->PyTuple_Pack(0))))
        return false;
    return set_global(py, PRB_PLANTER, on ? (int)wanted : 0);
}

static bool watch_exceptions(const struct prb_py_api *py, unsigned wanted)
{
    prb_monitoring.exceptions = wanted;
    return update_stepper(py);
}

static bool step(const struct prb_py_api *py, struct prb_py *code, unsigned wanted)
{
    struct prb_watched *one =
        wanted ? keep(py, PRB_STEPPER, code) : prb_monitoring_find(PRB_STEPPER, code);
    if (!one)
        return !wanted;
    one->events = wanted;
    PRB_AUTO(prb_py) struct prb_py *last = wanted ? NULL : forget(PRB_STEPPER, one);
    const unsigned local = PRB_DEBUG_LINE | PRB_DEBUG_JUMP | PRB_DEBUG_RETURN | PRB_DEBUG_CALLEE;
    return set_local(py, PRB_STEPPER, code, mask(wanted & local, false)) && update_stepper(py);
}

static bool gate(const struct prb_py_api *py, bool armed)
{
    prb_monitoring.armed = armed;
    return update_stepper(py);
}

static struct prb_py *local(const struct prb_py_api *py, struct prb_py *frame, struct prb_py *name,
                            long index)
{
    (void)index;
    return py->PyFrame_GetVar ? py->PyFrame_GetVar(frame, name) : NULL;
}

const struct prb_debug_mechanism prb_debug_monitoring = {
    .name = "monitoring",
    .usable = usable,
    .begin = begin,
    .end = end,
    .plant = plant,
    .watch_new_code = watch_new_code,
    .watch_exceptions = watch_exceptions,
    .step = step,
    .gate = gate,
    .local = local,
};
