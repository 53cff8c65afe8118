/*
 * The mechanism of CPython 3.12 and later: sys.monitoring (PEP 669).  Two tool ids: the planter's
 * events disable themselves wherever no line is planted and cost nothing then; the stepper's (gate,
 * steps, exceptions) never do, and are on only while somebody waits for them.
 */
#include <stdint.h>
#include <string.h>

#include "inject/probe/debug/core.h"

enum tool { PLANTER, STEPPER, TOOLS };
#define TOOL_IDS 6 /* Include/cpython/monitoring.h: PY_MONITORING_TOOL_IDS less CPython's own */

enum what { LINE, START, RESUME, THROW, JUMP, RETURN, YIELD, RAISE, UNWIND, EVENTS };

static const struct {
    const char *name; /* in sys.monitoring.events */
    enum prb_debug_event event;
    bool global_only; /* PEP 669: set_local_events refuses it */
} events[EVENTS] = {
    [LINE] = {"LINE", PRB_DEBUG_LINE, false},
    [START] = {"PY_START", PRB_DEBUG_CALL, false},
    [RESUME] = {"PY_RESUME", PRB_DEBUG_RESUME, false},
    [THROW] = {"PY_THROW", PRB_DEBUG_RESUME, true},
    [JUMP] = {"JUMP", PRB_DEBUG_JUMP, false},
    [RETURN] = {"PY_RETURN", PRB_DEBUG_RETURN, false},
    [YIELD] = {"PY_YIELD", PRB_DEBUG_RETURN, false},
    [RAISE] = {"RAISE", PRB_DEBUG_RAISE, true},
    [UNWIND] = {"PY_UNWIND", PRB_DEBUG_UNWIND, true},
};

/* Code whose events are on: lines for the planter, a mask of enum prb_debug_event for the stepper.
 */
struct watched {
    struct prb_py *code;
    int *lines; /* ascending */
    size_t count;
    unsigned events;
};

/* All with the GIL. */
static struct {
    struct prb_py *module; /* sys.monitoring */
    struct prb_py *disable;
    int ids[TOOLS];
    int global[TOOLS]; /* CPython's masks, as they are set */
    long numbers[EVENTS];
    struct watched *watched[TOOLS];
    size_t count[TOOLS], cap[TOOLS];
    bool armed;
    unsigned exceptions;
} monitoring;

/* ---- calls of sys.monitoring ---- */

static struct prb_py *call(const struct prb_py_api *py, const char *name, struct prb_py *args)
{
    PRB_AUTO(prb_py) struct prb_py *taken = args;
    PRB_AUTO(prb_py)
    struct prb_py *function = args ? py->PyObject_GetAttrString(monitoring.module, name) : NULL;
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

static bool set_local(const struct prb_py_api *py, enum tool tool, struct prb_py *code, long mask)
{
    return succeeded(
        call(py, "set_local_events", args_of(py, monitoring.ids[tool], code, mask, NULL)));
}

static bool set_global(const struct prb_py_api *py, enum tool tool, int mask)
{
    if (monitoring.global[tool] == mask)
        return true;
    if (!succeeded(call(py, "set_events", args_of(py, monitoring.ids[tool], NULL, mask, NULL))))
        return false;
    monitoring.global[tool] = mask;
    return true;
}

/* ---- watched code ---- */

static struct watched *find(enum tool tool, const struct prb_py *code)
{
    for (size_t i = 0; i < monitoring.count[tool]; i++)
        if (monitoring.watched[tool][i].code == code)
            return &monitoring.watched[tool][i];
    return NULL;
}

static struct watched *keep(const struct prb_py_api *py, enum tool tool, struct prb_py *code)
{
    struct watched *found = find(tool, code);
    if (found || !PRB_GROW(monitoring.watched[tool], monitoring.count[tool], monitoring.cap[tool]))
        return found;
    py->Py_IncRef(code);
    found = &monitoring.watched[tool][monitoring.count[tool]++];
    *found = (struct watched){.code = code};
    return found;
}

/* The reference is the caller's after. */
static struct prb_py *forget(enum tool tool, struct watched *one)
{
    struct prb_py *code = one->code;
    free(one->lines);
    *one = monitoring.watched[tool][--monitoring.count[tool]];
    return code;
}

static bool is_planted(const struct prb_py *code, int line)
{
    const struct watched *one = find(PLANTER, code);
    size_t low = 0, high = one ? one->count : 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (one->lines[middle] == line)
            return true;
        if (one->lines[middle] < line)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static int compare(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* ---- callbacks: METH_FASTCALL ---- */

static struct prb_py *give(const struct prb_py_api *py, struct prb_py *value)
{
    py->Py_IncRef(value);
    return value;
}

/* Tell the core; NULL: the exception that it left. */
static struct prb_py *happened(const struct prb_py_api *py, struct prb_debug_place *place,
                               struct prb_py *answer)
{
    if (prb_debug_wanted(place->event, place->code, place->planted)) {
        place->frame = py->PyEval_GetFrame();
        if (!prb_debug_happened(place))
            return NULL;
    }
    return give(py, answer);
}

static struct prb_py *on_planted(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 2)
        return NULL;
    struct prb_debug_place place = {.event = PRB_DEBUG_LINE, .code = args[0], .planted = true};
    place.line = (int)py->PyLong_AsLong(args[1]);
    if (!is_planted(args[0], place.line))
        return give(py, monitoring.disable ? monitoring.disable : py->none);
    return happened(py, &place, py->none);
}

static struct prb_py *on_new(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 2)
        return NULL;
    bool ours = prb_debug_is_inside(); /* then it is told when the program runs it */
    struct prb_debug_place place = {.event = PRB_DEBUG_CALL, .code = args[0], .planted = true};
    struct prb_py *told = happened(py, &place, py->none);
    if (!told || ours || !monitoring.disable)
        return told;
    prb_py_drop(told);
    return give(py, monitoring.disable);
}

static struct prb_py *on_line(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 2)
        return NULL;
    struct prb_debug_place place = {.event = PRB_DEBUG_LINE, .code = args[0]};
    place.line = (int)py->PyLong_AsLong(args[1]);
    /* The planter's event of this line tells it. */
    return is_planted(args[0], place.line) ? give(py, py->none) : happened(py, &place, py->none);
}

static struct prb_py *on_jump(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 3)
        return NULL;
    struct prb_debug_place place = {.event = PRB_DEBUG_JUMP, .code = args[0]};
    bool back = py->PyLong_AsLong(args[2]) <= py->PyLong_AsLong(args[1]);
    return back ? happened(py, &place, py->none) : give(py, py->none);
}

/* (code, offset) or (code, offset, value) */
static struct prb_py *on_other(enum what what, struct prb_py **args, ptrdiff_t count)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 2)
        return NULL;
    struct prb_debug_place place = {
        .event = events[what].event, .code = args[0], .value = count > 2 ? args[2] : NULL};
    return happened(py, &place, py->none);
}

#define OTHER(name, what)                                                                          \
    static struct prb_py *name(struct prb_py *self, struct prb_py **args, ptrdiff_t count)         \
    {                                                                                              \
        (void)self;                                                                                \
        return on_other(what, args, count);                                                        \
    }
OTHER(on_start, START)
OTHER(on_resume, RESUME)
OTHER(on_throw, THROW)
OTHER(on_return, RETURN)
OTHER(on_yield, YIELD)
OTHER(on_raise, RAISE)
OTHER(on_unwind, UNWIND)

#define FAST(name, function)                                                                       \
    {                                                                                              \
        name, (prb_py_function)(void (*)(void))function, PRB_PY_FASTCALL, "of probing's debugger"  \
    }
static struct {
    enum tool tool;
    enum what what;
    struct prb_py_method method;
    struct prb_py *function; /* for ever: CPython uses it borrowed while a thread is parked in it */
} callbacks[] = {
    {PLANTER, LINE, FAST("planted", on_planted), NULL},
    {PLANTER, START, FAST("new", on_new), NULL},
    {PLANTER, RESUME, FAST("new", on_new), NULL},
    {STEPPER, LINE, FAST("line", on_line), NULL},
    {STEPPER, START, FAST("start", on_start), NULL},
    {STEPPER, RESUME, FAST("resume", on_resume), NULL},
    {STEPPER, THROW, FAST("throw", on_throw), NULL},
    {STEPPER, JUMP, FAST("jump", on_jump), NULL},
    {STEPPER, RETURN, FAST("return", on_return), NULL},
    {STEPPER, YIELD, FAST("yield", on_yield), NULL},
    {STEPPER, RAISE, FAST("raise", on_raise), NULL},
    {STEPPER, UNWIND, FAST("unwind", on_unwind), NULL},
};
#define CALLBACKS (sizeof callbacks / sizeof *callbacks)

/* ---- begin and end ---- */

static bool usable(const struct prb_py_api *py, struct prb_error *err)
{
    struct prb_py *module = py->PySys_GetObject("monitoring");
    if (!module)
        return prb_fail(err, PRB_UNSUPPORTED, "this interpreter has no sys.monitoring");
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
    struct prb_py *space = py->PyObject_GetAttrString(monitoring.module, "events");
    for (int i = 0; space && i < EVENTS; i++) {
        PRB_AUTO(prb_py)
        struct prb_py *number = py->PyObject_GetAttrString(space, events[i].name);
        if (!number)
            return false;
        monitoring.numbers[i] = py->PyLong_AsLong(number);
    }
    monitoring.disable = py->PyObject_GetAttrString(monitoring.module, "DISABLE");
    return space && monitoring.disable;
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

static bool register_callback(const struct prb_py_api *py, size_t i, struct prb_py *function)
{
    int id = monitoring.ids[callbacks[i].tool];
    return function &&
           succeeded(call(py, "register_callback",
                          args_of(py, id, NULL, monitoring.numbers[callbacks[i].what], function)));
}

static void end(const struct prb_py_api *py)
{
    for (int tool = 0; tool < TOOLS; tool++) {
        if (!monitoring.module || monitoring.ids[tool] < 0)
            continue;
        set_global(py, tool, 0);
        while (monitoring.count[tool]) {
            struct watched *last = &monitoring.watched[tool][monitoring.count[tool] - 1];
            PRB_AUTO(prb_py) struct prb_py *code = forget(tool, last);
            set_local(py, tool, code, 0);
            py->PyErr_Clear();
        }
        free(monitoring.watched[tool]);
        monitoring.watched[tool] = NULL;
        monitoring.cap[tool] = 0;
    }
    for (size_t i = 0; monitoring.module && i < CALLBACKS; i++)
        if (monitoring.ids[callbacks[i].tool] >= 0)
            register_callback(py, i, py->none);
    for (int tool = 0; tool < TOOLS; tool++) {
        PRB_AUTO(prb_py) struct prb_py *id = py->PyLong_FromLong(monitoring.ids[tool]);
        if (monitoring.module && monitoring.ids[tool] >= 0 && id)
            succeeded(call(py, "free_tool_id", py->PyTuple_Pack(1, id)));
        monitoring.ids[tool] = -1;
    }
    py->PyErr_Clear();
    PRB_AUTO(prb_py) struct prb_py *module = PRB_STEAL(monitoring.module);
    PRB_AUTO(prb_py) struct prb_py *disable = PRB_STEAL(monitoring.disable);
    monitoring.armed = false;
    monitoring.exceptions = 0;
}

static bool begin(const struct prb_py_api *py, struct prb_error *err)
{
    monitoring.module = give(py, py->PySys_GetObject("monitoring"));
    monitoring.ids[PLANTER] = monitoring.ids[STEPPER] = -1;
    memset(monitoring.global, 0, sizeof monitoring.global);
    bool ok = read_numbers(py);
    if (ok && !(take_id(py, &monitoring.ids[PLANTER]) && take_id(py, &monitoring.ids[STEPPER]))) {
        end(py);
        return prb_fail(err, PRB_BUSY, "no two tool ids of sys.monitoring are free");
    }
    for (size_t i = 0; ok && i < CALLBACKS; i++) {
        if (!callbacks[i].function)
            callbacks[i].function = py->PyCFunction_NewEx(&callbacks[i].method, NULL, NULL);
        ok = register_callback(py, i, callbacks[i].function);
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
    for (int i = 0; i < EVENTS; i++)
        if ((events[i].event & wanted) && (!global_only || events[i].global_only))
            all |= monitoring.numbers[i];
    return all;
}

static bool update_stepper(const struct prb_py_api *py)
{
    unsigned stepped = 0;
    for (size_t i = 0; i < monitoring.count[STEPPER]; i++)
        stepped |= monitoring.watched[STEPPER][i].events;
    /* What a code object calls is other code. */
    unsigned everywhere = (stepped & (PRB_DEBUG_CALL | PRB_DEBUG_RESUME)) | monitoring.exceptions |
                          (monitoring.armed ? PRB_DEBUG_GATE : 0);
    long all = mask(everywhere, false) | mask(stepped, true);
    return set_global(py, STEPPER, (int)all);
}

static bool plant(const struct prb_py_api *py, struct prb_py *code, const int *lines, size_t count)
{
    struct watched *one = count ? keep(py, PLANTER, code) : find(PLANTER, code);
    if (!one)
        return !count;
    /* Off first: what an event disabled at lines that count now is on again. */
    bool ok = set_local(py, PLANTER, code, 0);
    one = find(PLANTER, code);
    if (!one || !count) {
        prb_py_drop(one ? forget(PLANTER, one) : NULL);
        return ok;
    }
    int *kept = realloc(one->lines, count * sizeof *kept);
    if (!kept)
        return false;
    memcpy(kept, lines, count * sizeof *kept);
    qsort(kept, count, sizeof *kept, compare);
    one->lines = kept;
    one->count = count;
    return ok && set_local(py, PLANTER, code, monitoring.numbers[LINE]);
}

static bool watch_new_code(const struct prb_py_api *py, bool on)
{
    long wanted = monitoring.numbers[START] | monitoring.numbers[RESUME];
    bool was = monitoring.global[PLANTER];
    if (on && !was && !succeeded(call(py, "restart_events", py->PyTuple_Pack(0))))
        return false;
    return set_global(py, PLANTER, on ? (int)wanted : 0);
}

static bool watch_exceptions(const struct prb_py_api *py, unsigned wanted)
{
    monitoring.exceptions = wanted;
    return update_stepper(py);
}

static bool step(const struct prb_py_api *py, struct prb_py *code, unsigned wanted)
{
    struct watched *one = wanted ? keep(py, STEPPER, code) : find(STEPPER, code);
    if (!one)
        return !wanted;
    one->events = wanted;
    PRB_AUTO(prb_py) struct prb_py *last = wanted ? NULL : forget(STEPPER, one);
    const unsigned local = PRB_DEBUG_LINE | PRB_DEBUG_JUMP | PRB_DEBUG_RETURN;
    return set_local(py, STEPPER, code, mask(wanted & local, false)) && update_stepper(py);
}

static bool gate(const struct prb_py_api *py, bool armed)
{
    monitoring.armed = armed;
    return update_stepper(py);
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
};
