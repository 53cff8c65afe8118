/*
 * What sys.monitoring calls (METH_FASTCALL): each event as a place for the core (debug.h).  A hook
 * that answers DISABLE is not called again for that instruction (PEP 669).
 */
#include "inject/probe/debug/monitoring/monitoring.h"

static bool is_planted(const struct prb_py *code, int line)
{
    const struct prb_watched *one = prb_monitoring_find(PRB_PLANTER, code);
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
        return prb_py_nothing();
    struct prb_debug_place place = {.event = PRB_DEBUG_LINE, .code = args[0], .planted = true};
    place.line = (int)py->PyLong_AsLong(args[1]);
    if (!is_planted(args[0], place.line))
        return give(py, prb_monitoring.disable ? prb_monitoring.disable : py->none);
    return happened(py, &place, py->none);
}

static struct prb_py *on_new(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 2)
        return prb_py_nothing();
    bool ours = prb_py_is_inside(); /* then it is reported when the program runs it */
    struct prb_debug_place place = {.event = PRB_DEBUG_CALL, .code = args[0], .planted = true};
    struct prb_py *result = happened(py, &place, py->none);
    if (!result || ours || !prb_monitoring.disable)
        return result;
    prb_py_drop(result);
    return give(py, prb_monitoring.disable);
}

static struct prb_py *on_line(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 2)
        return prb_py_nothing();
    struct prb_debug_place place = {.event = PRB_DEBUG_LINE, .code = args[0]};
    place.line = (int)py->PyLong_AsLong(args[1]);
    /* The planter's event of this line reports it. */
    return is_planted(args[0], place.line) ? give(py, py->none) : happened(py, &place, py->none);
}

/* Whether a jump stays in a line: then no LINE reports it, else that of its target does (seen on
 * 3.12.1 to 3.15).  Offsets are of instructions: for those of caches 3.14 knows no line. */
static bool is_silent(const struct prb_py_api *py, struct prb_py *code, int from, int to)
{
    return !py->PyCode_Addr2Line ||
           py->PyCode_Addr2Line(code, from) == py->PyCode_Addr2Line(code, to);
}

/* (code, from, to) as a place; false: not backward, or LINE reports it. */
static bool take_jump(const struct prb_py_api *py, struct prb_py **args,
                      struct prb_debug_place *place)
{
    int from = (int)py->PyLong_AsLong(args[1]), to = (int)py->PyLong_AsLong(args[2]);
    place->code = args[0];
    place->line = py->PyCode_Addr2Line ? py->PyCode_Addr2Line(args[0], to) : 0;
    return to <= from && is_silent(py, args[0], from, to);
}

/* A planted loop of one line: each turn is reported as its line. */
static struct prb_py *on_planted_jump(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 3)
        return prb_py_nothing();
    struct prb_debug_place place = {.event = PRB_DEBUG_LINE, .planted = true};
    if (!take_jump(py, args, &place) || !is_planted(place.code, place.line))
        return give(py, prb_monitoring.disable ? prb_monitoring.disable : py->none);
    return happened(py, &place, py->none);
}

static struct prb_py *on_jump(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 3)
        return prb_py_nothing();
    struct prb_debug_place place = {.event = PRB_DEBUG_JUMP};
    bool silent = take_jump(py, args, &place);
    /* The planter's event reports a planted one. */
    bool report = silent && !is_planted(place.code, place.line);
    return report ? happened(py, &place, py->none) : give(py, py->none);
}

/* (code, offset) or (code, offset, value) */
static struct prb_py *on_other(enum prb_debug_event event, struct prb_py **args, ptrdiff_t count)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 2)
        return prb_py_nothing();
    struct prb_debug_place place = {
        .event = event, .code = args[0], .value = count > 2 ? args[2] : NULL};
    return happened(py, &place, py->none);
}

/* (code, offset, callable, first argument): once an instruction, until the next step turns it on */
static struct prb_py *on_call(struct prb_py *self, struct prb_py **args, ptrdiff_t count)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || count < 3)
        return prb_py_nothing();
    struct prb_debug_place place = {.event = PRB_DEBUG_CALLEE, .code = args[0], .value = args[2]};
    bool known = prb_monitoring.disable && prb_debug_wanted(place.event, place.code, false);
    PRB_AUTO(prb_py) struct prb_py *answer = give(py, known ? prb_monitoring.disable : py->none);
    return happened(py, &place, answer);
}

#define OTHER(name, event)                                                                         \
    static struct prb_py *name(struct prb_py *self, struct prb_py **args, ptrdiff_t count)         \
    {                                                                                              \
        (void)self;                                                                                \
        return on_other(event, args, count);                                                       \
    }
OTHER(on_start, PRB_DEBUG_CALL)
OTHER(on_resume, PRB_DEBUG_RESUME)
OTHER(on_return, PRB_DEBUG_RETURN)
OTHER(on_raise, PRB_DEBUG_RAISE)
OTHER(on_unwind, PRB_DEBUG_UNWIND)

#define HOOK(tool, event, name)                                                                    \
    {tool,                                                                                         \
     PRB_MONITORING_##event,                                                                       \
     {#name, (prb_py_function)(void (*)(void))name, PRB_PY_FASTCALL, "of probing's debugger"},     \
     NULL}
struct prb_monitoring_hook prb_monitoring_hooks[] = {
    HOOK(PRB_PLANTER, LINE, on_planted),
    HOOK(PRB_PLANTER, JUMP, on_planted_jump),
    HOOK(PRB_PLANTER, PY_START, on_new),
    HOOK(PRB_PLANTER, PY_RESUME, on_new),
    HOOK(PRB_STEPPER, LINE, on_line),
    HOOK(PRB_STEPPER, JUMP, on_jump),
    HOOK(PRB_STEPPER, PY_START, on_start),
    HOOK(PRB_STEPPER, PY_RESUME, on_resume),
    HOOK(PRB_STEPPER, PY_THROW, on_resume),
    HOOK(PRB_STEPPER, PY_RETURN, on_return),
    HOOK(PRB_STEPPER, PY_YIELD, on_return),
    HOOK(PRB_STEPPER, RAISE, on_raise),
    HOOK(PRB_STEPPER, PY_UNWIND, on_unwind),
    HOOK(PRB_STEPPER, CALL, on_call),
    {.method = {.name = NULL}},
};
