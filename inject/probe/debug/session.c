/*
 * The session's life: its Python is loaded, events of the mechanism are looked at, and all of it is
 * taken out again.  Relies on python/agent.c for namespaces and jobs.
 */
#include "inject/probe/debug/session.h"

#include <stdio.h>
#include <string.h>

#include "base/json_text.h"
#include "inject/probe/debug/birth.h"
#include "inject/probe/libc.h"
#include "inject/probe/python/bytecode.h"
#include "inject/probe/python/sources.h"
#include "inject/probe/python/space.h"
#include "inject/probe/python/switch_interval.h"
#include "inject/probe/server/request.h"

struct prb_debug_session prb_debug_session = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct prb_debug_session *const session = &prb_debug_session;

static const struct prb_debug_mechanism *const mechanisms[] = {
#define MECHANISM(name) &prb_debug_##name,
#include "inject/probe/debug/mechanisms.def"
#undef MECHANISM
};

/* ---- calls of the agent ---- */

static void report_failure(const struct prb_py_api *py)
{
    char text[1024];
    prb_py_raised(py, text, sizeof text);
    PRB_AUTO(prb_buf) struct prb_buf event = {0}, line = {0};
    prb_buf_addf(&line, "the debugger's own code failed: %s\n", text);
    prb_buf_adds(&event, "{\"event\":\"output\",\"body\":{\"category\":\"console\",\"output\":");
    if (prb_buf_ok(&line))
        prb_json_add_text(&event, line.data, line.len);
    prb_buf_adds(&event, "}}");
    if (prb_buf_ok(&event) && prb_buf_ok(&line))
        prb_debug_emit(event.data, event.len, false);
}

struct prb_py *prb_debug_call_agent(const struct prb_py_api *py, struct prb_debug_parked *parked,
                                    struct prb_py *function, struct prb_py *args)
{
    PRB_AUTO(prb_py) struct prb_py *taken = args, *kept = function;
    if (!function)
        return NULL;
    py->Py_IncRef(function); /* the session may end meanwhile */
    struct prb_py *result = args ? py->PyObject_CallObject(function, args) : NULL;
    if (!result && !(parked && prb_debug_keep_raised(py, parked, true)))
        report_failure(py);
    return result;
}

/* ---- hooks ---- */

static void drop(struct prb_py **object)
{
    PRB_AUTO(prb_py) struct prb_py *last = *object;
    *object = NULL;
}

static void take_hooks_out(const struct prb_py_api *py)
{
    const struct prb_debug_mechanism *mechanism = session->mechanism;
    session->mechanism = NULL;
    if (mechanism)
        mechanism->end(py);
    py->PyErr_Clear();
    unsigned count = session->step_count;
    session->step_count = session->pass_count = session->exceptions = 0;
    session->armed = false;
    for (unsigned i = 0; i < count; i++) {
        drop(&session->steps[i].code);
        drop(&session->steps[i].frame);
    }
    prb_debug_drop_conditions(NULL);
}

/* The hooks of a process that this one was forked from go when the first of them is reached. */
static void drop_stale(const struct prb_py_api *py)
{
    if (!session->stale)
        return;
    session->stale = false;
    take_hooks_out(py);
}

/* ---- loading ---- */

static void choose_mechanism(const struct prb_py_api *py)
{
    bool explained = false;
    session->mechanism = NULL;
    session->without[0] = '\0';
    for (size_t i = 0; i < sizeof mechanisms / sizeof *mechanisms && !session->mechanism; i++) {
        struct prb_error err = {0};
        if (mechanisms[i]->usable(py, &err) && mechanisms[i]->begin(py, &err))
            session->mechanism = mechanisms[i];
        else if (!explained) /* a mechanism for another CPython does not explain this one */
            snprintf(session->without, sizeof session->without, "%s", err.text);
        explained = explained || err.code != PRB_NOT_FOUND;
    }
    py->PyErr_Clear();
}

/* The agent's namespace after its source ran, a new reference; NULL: an exception is set, or err.
 */
static struct prb_py *execute(const struct prb_py_api *py, struct prb_error *err)
{
    PRB_AUTO(prb_py) struct prb_py *probe = NULL;
    PRB_AUTO(prb_py) struct prb_py *space = prb_py_space(py, "debug", &probe, err);
    const struct prb_py_source *source = prb_py_source("<probing debug agent>");
    bool ran = space && prb_py_give(py, probe, "functions", prb_debug_functions(py)) &&
               prb_py_give(py, probe, "methods", prb_debug_methods(py)) &&
               prb_py_run(py, source, space);
    return ran ? PRB_STEAL(space) : NULL;
}

static const struct {
    const char *name;
    struct prb_py **to;
} functions[] = {
    {"call", &prb_debug_session.call},
    {"happened", &prb_debug_session.happened},
    {"parked", &prb_debug_session.report_parked},
    {"forget", &prb_debug_session.forget},
    {"close", &prb_debug_session.close},
};

static bool load(const struct prb_py_api *py, struct prb_error *err)
{
    struct prb_error failed = {0};
    choose_mechanism(py);
    prb_py_yield_gil(py);
    session->space = execute(py, &failed);
    if (!session->space) {
        char text[201];
        if (failed.code)
            return prb_fail(err, failed.code, "%s", failed.text);
        return prb_fail(err, PRB_INTERNAL, "loading the debugger failed in the target: %s",
                        prb_py_raised(py, text, sizeof text));
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        *functions[i].to = py->PyDict_GetItemString(session->space, functions[i].name);
        if (*functions[i].to)
            py->Py_IncRef(*functions[i].to);
    }
    return session->call || prb_fail(err, PRB_INTERNAL, "the debugger's code has no function call");
}

bool prb_debug_load(const struct prb_py_api *py, struct prb_error *err)
{
    if (session->state != PRB_DEBUG_OPEN)
        return prb_fail(err, PRB_GONE, "the debug session has ended");
    if (session->call)
        return true;
    if (session->loading)
        return prb_fail(err, PRB_BUSY, "the debug session is just beginning");
    session->loading = true;
    prb_py_inside(1);
    drop_stale(py);
    prb_switch_interval_find(py);
    bool ok = load(py, err);
    if (!ok)
        take_hooks_out(py);
    prb_py_inside(-1);
    session->loading = false;
    if (session->state == PRB_DEBUG_OPEN)
        return ok;
    prb_debug_take_out(py); /* it waited for us */
    return prb_fail(err, PRB_GONE, "the debug session has ended");
}

/* ---- the end ---- */

static void drop_agent(const struct prb_py_api *py)
{
    PRB_AUTO(prb_py)
    struct prb_py *closed =
        session->close ? prb_debug_call_agent(py, NULL, session->close, py->PyTuple_Pack(0)) : NULL;
    py->PyErr_Clear();
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        drop(functions[i].to);
    drop(&session->space);
}

void prb_debug_take_out(const struct prb_py_api *py)
{
    if (session->state != PRB_DEBUG_ENDING || session->loading || session->leaving)
        return;
    session->leaving = true;
    prb_py_inside(1);
    prb_debug_interrupt(py);
    take_hooks_out(py);
    drop_agent(py);
    prb_py_inside(-1);
    pthread_mutex_lock(&session->lock);
    session->state = PRB_DEBUG_NONE;
    struct prb_request *request = PRB_STEAL(session->request);
    if (!session->waiting)
        prb_bytecode_use(NULL);
    pthread_mutex_unlock(&session->lock);
    session->leaving = false;
    if (request) {
        prb_request_end(request, NULL);
        prb_request_release(request);
    }
    prb_debug_next();
}

void prb_debug_end(void)
{
    pthread_mutex_lock(&session->lock);
    if (session->state == PRB_DEBUG_OPEN)
        session->state = PRB_DEBUG_ENDING;
    pthread_mutex_unlock(&session->lock);
    prb_debug_let_go(0, false);
}

void prb_debug_forked(void)
{
    for (struct prb_debug_parked *parked = session->parked; parked; parked = parked->next)
        parked->resume = true;
    pthread_mutex_init(&session->lock, NULL);
    prb_debug_birth_forked();
    if (session->mechanism && session->mechanism->forked)
        session->mechanism->forked();
    session->stale = session->mechanism != NULL;
    session->state = PRB_DEBUG_NONE;
    session->request = session->waiting = NULL;
    session->parked = NULL;
    session->loading = session->leaving = session->armed = false;
    session->exceptions = session->step_count = session->pass_count = 0;
    session->condition_count = 0;
    /* The parent's Python objects stay: nobody here may touch their counts now. */
    session->space = session->call = session->happened = NULL;
    session->report_parked = session->forget = session->close = NULL;
}

/* ---- events ---- */

static struct prb_debug_step *find_step(enum prb_debug_event event, const struct prb_py *code,
                                        unsigned long ident)
{
    bool any_code = event & (PRB_DEBUG_CALL | PRB_DEBUG_RESUME | PRB_DEBUG_RESULT);
    for (unsigned i = 0; i < session->step_count; i++) {
        struct prb_debug_step *step = &session->steps[i];
        if (step->ident == ident && (step->events & event) && (any_code || step->code == code))
            return step;
    }
    return NULL;
}

static bool is_stepped(enum prb_debug_event event, const struct prb_py *code, unsigned long ident)
{
    return find_step(event, code, ident) != NULL;
}

/* A return to another frame than the one that is stepped: a recursion has thousands of them.  The
 * last that is looked through is reported: the agent wants no results then. */
static bool returns_deeper(const struct prb_py_api *py, const struct prb_debug_place *place,
                           unsigned long ident)
{
    struct prb_debug_step *step = place->event == PRB_DEBUG_RETURN && py->PyFrame_GetBack
                                      ? find_step(place->event, place->code, ident)
                                      : NULL;
    if (!step || !step->frame || !place->frame || place->frame == step->frame)
        return false;
    if (step->deeper == PRB_DEBUG_DEEPER_MAX)
        return true;
    PRB_AUTO(prb_py) struct prb_py *caller = py->PyFrame_GetBack(place->frame);
    return caller != step->frame && ++step->deeper < PRB_DEBUG_DEEPER_MAX;
}

/* The agent decides. */
static bool is_asked(enum prb_debug_event event, const struct prb_py *code, bool planted,
                     unsigned long ident)
{
    return planted || (event & session->exceptions) || is_stepped(event, code, ident);
}

static bool is_gated(enum prb_debug_event event, unsigned long ident)
{
    if (!session->armed || !(event & PRB_DEBUG_GATE))
        return false;
    for (unsigned i = 0; i < session->pass_count; i++)
        if (session->passes[i] == ident)
            return false;
    return true;
}

/* A signal handler of the program ended happened(): what it began to note of a stop goes. */
static void forget_stop(const struct prb_py_api *py, struct prb_debug_parked *parked)
{
    PRB_AUTO(prb_py) struct prb_py *ident = py->PyLong_FromUnsignedLongLong(parked->ident);
    if (!ident)
        return;
    PRB_AUTO(prb_py)
    struct prb_py *result =
        prb_debug_call_agent(py, parked, session->forget, py->PyTuple_Pack(1, ident));
}

/* False: nothing is to be asked, as the condition is false or the session ends.  A step may end at
 * this line whatever the condition: then the agent evaluates it. */
static bool is_met(const struct prb_py_api *py, const struct prb_debug_place *place,
                   struct prb_debug_parked *parked, struct prb_py **judged_out)
{
    if (!place->planted || is_stepped(place->event, place->code, parked->ident))
        return true;
    parked->asked = true;
    bool met = prb_debug_judge(py, place, judged_out);
    parked->asked = false;
    if (!parked->interrupted)
        return met;
    prb_debug_withdraw(py, parked);
    return false;
}

/* What happened() answers: a reason, or NULL. */
static struct prb_py *ask(const struct prb_py_api *py, const struct prb_debug_place *place,
                          struct prb_debug_parked *parked)
{
    PRB_AUTO(prb_py) struct prb_py *judged = NULL;
    if (!is_met(py, place, parked, &judged))
        return NULL;
    PRB_AUTO(prb_py) struct prb_py *event = py->PyLong_FromLong(place->event);
    PRB_AUTO(prb_py) struct prb_py *line = py->PyLong_FromLong(place->line);
    PRB_AUTO(prb_py) struct prb_py *planted = py->PyLong_FromLong(place->planted);
    if (!event || !line || !planted) {
        py->PyErr_Clear();
        return NULL;
    }
    struct prb_py *args = py->PyTuple_Pack(
        7, event, place->frame ? place->frame : py->none, place->code, line,
        place->value ? place->value : py->none, planted, judged ? judged : py->none);
    parked->asked = true;
    PRB_AUTO(prb_py)
    struct prb_py *reason = prb_debug_call_agent(py, parked, session->happened, args);
    parked->asked = false;
    if (parked->interrupted)
        prb_debug_withdraw(py, parked);
    if (!reason && parked->pending)
        forget_stop(py, parked);
    return reason && reason != py->none ? PRB_STEAL(reason) : NULL;
}

/* False: an exception for the program is set. */
static bool look(const struct prb_py_api *py, const struct prb_debug_place *place,
                 unsigned long ident, bool wanted)
{
    struct prb_py *type, *value, *trace;
    py->PyErr_Fetch(&type, &value, &trace);
    prb_py_inside(1);
    /* Now, and not in the midst of our code; those that only park run none. */
    bool ok = !wanted || py->PyErr_CheckSignals() == 0;
    struct prb_debug_parked *parked = ok ? prb_debug_enter(py, place, ident) : NULL;
    if (parked) {
        struct prb_py *reason = wanted ? ask(py, place, parked) : NULL;
        ok = prb_debug_stay(py, parked, reason, is_gated(place->event, ident));
    }
    prb_py_inside(-1);
    if (ok) {
        py->PyErr_Restore(type, value, trace);
        return true;
    }
    prb_debug_chain(py, place->event & (PRB_DEBUG_RAISE | PRB_DEBUG_UNWIND) ? place->value : NULL);
    prb_py_drop(type);
    prb_py_drop(value);
    prb_py_drop(trace);
    return false;
}

bool prb_debug_wanted(enum prb_debug_event event, const struct prb_py *code, bool planted)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py)
        return false;
    if (session->state != PRB_DEBUG_OPEN) {
        drop_stale(py);
        return false;
    }
    if (prb_py_is_inside())
        return false;
    unsigned long ident = py->PyThread_get_thread_ident();
    return is_asked(event, code, planted, ident) || is_gated(event, ident);
}

bool prb_debug_happened(const struct prb_debug_place *place)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || !prb_debug_wanted(place->event, place->code, place->planted))
        return true;
    unsigned long ident = py->PyThread_get_thread_ident();
    if (returns_deeper(py, place, ident))
        return true;
    return look(py, place, ident, is_asked(place->event, place->code, place->planted, ident));
}

bool prb_debug_found(const struct prb_py_api *py, const struct prb_debug_place *place)
{
    return session->state != PRB_DEBUG_OPEN || prb_py_is_inside() ||
           look(py, place, py->PyThread_get_thread_ident(), true);
}
