/*
 * Conditions of breakpoints that are evaluated here: one that is false, in a hot loop, runs no code
 * of the agent.  What is true or raises is the agent's to judge (breakpoints.py says which
 * conditions come here).
 */
#include "inject/probe/debug/session.h"

static struct prb_debug_session *const session = &prb_debug_session;

static struct prb_py *hold(const struct prb_py_api *py, struct prb_py *object)
{
    py->Py_IncRef(object);
    return object;
}

/* ---- the table ---- */

static void drop(struct prb_debug_condition *one)
{
    struct prb_debug_condition last = *one;
    *one = session->conditions[--session->condition_count];
    prb_py_drop(last.code);
    prb_py_drop(last.test);
    prb_py_drop(last.locals);
}

void prb_debug_drop_conditions(const struct prb_py *code)
{
    for (unsigned i = session->condition_count; i-- > 0;)
        if (i < session->condition_count && (!code || session->conditions[i].code == code))
            drop(&session->conditions[i]);
}

bool prb_debug_add_condition(const struct prb_py_api *py, struct prb_py *code, int line,
                             struct prb_py *test, struct prb_py *locals)
{
    if (session->condition_count == PRB_DEBUG_CONDITIONS_MAX)
        return false; /* the agent evaluates it */
    session->conditions[session->condition_count++] = (struct prb_debug_condition){
        hold(py, code), line, hold(py, test), locals == py->none ? NULL : hold(py, locals)};
    return true;
}

static const struct prb_debug_condition *find(const struct prb_py *code, int line)
{
    for (unsigned i = 0; i < session->condition_count; i++)
        if (session->conditions[i].code == code && session->conditions[i].line == line)
            return &session->conditions[i];
    return NULL;
}

/* ---- evaluation ---- */

/* {name: value} of the locals that the condition names, a new reference; what has no value yet is
 * left out.  wanted: (name, index, name, index, ...) */
static struct prb_py *names(const struct prb_py_api *py, const struct prb_debug_place *place,
                            struct prb_py *wanted)
{
    const struct prb_debug_mechanism *mechanism = session->mechanism; /* a collection may end it */
    PRB_AUTO(prb_py) struct prb_py *dict = py->PyDict_New();
    ptrdiff_t count = py->PyTuple_Size(wanted);
    for (ptrdiff_t i = 0; dict && i + 1 < count; i += 2) {
        struct prb_py *name = py->PyTuple_GetItem(wanted, i);
        long index = py->PyLong_AsLong(py->PyTuple_GetItem(wanted, i + 1));
        PRB_AUTO(prb_py)
        struct prb_py *value = mechanism->local(py, place->frame, name, index);
        if (!value)
            py->PyErr_Clear();
        else if (py->PyDict_SetItem(dict, name, value) != 0)
            return NULL;
    }
    return dict ? PRB_STEAL(dict) : NULL;
}

/* 1: true, 0: false, -1: an exception is set. */
static int evaluate(const struct prb_py_api *py, const struct prb_debug_place *place,
                    struct prb_py *test, struct prb_py *wanted)
{
    /* The thread's frame is the place's: a hook has none. */
    struct prb_py *globals = py->PyEval_GetGlobals();
    struct prb_py *locals = wanted ? NULL : py->PyEval_GetLocals();
    if (!globals || (!wanted && !locals))
        return -1;
    PRB_AUTO(prb_py) struct prb_py *outer = hold(py, globals);
    PRB_AUTO(prb_py)
    struct prb_py *inner = wanted ? names(py, place, wanted) : hold(py, locals);
    PRB_AUTO(prb_py)
    struct prb_py *value = inner ? py->PyEval_EvalCode(test, outer, inner) : NULL;
    return value ? py->PyObject_IsTrue(value) : -1;
}

bool prb_debug_judge(const struct prb_py_api *py, const struct prb_debug_place *place,
                     struct prb_py **judged_out)
{
    *judged_out = NULL;
    bool judges = place->planted && place->event == PRB_DEBUG_LINE && place->frame &&
                  session->condition_count && session->mechanism;
    const struct prb_debug_condition *one = judges ? find(place->code, place->line) : NULL;
    if (!one)
        return true;
    /* The client may change the table meanwhile. */
    PRB_AUTO(prb_py) struct prb_py *test = hold(py, one->test);
    PRB_AUTO(prb_py) struct prb_py *wanted = one->locals ? hold(py, one->locals) : NULL;
    int truth = evaluate(py, place, test, wanted);
    if (truth == 0)
        return false;
    PRB_AUTO(prb_py) struct prb_py *raised = NULL;
    if (truth < 0) {
        struct prb_py *type, *value, *trace;
        py->PyErr_Fetch(&type, &value, &trace);
        py->PyErr_NormalizeException(&type, &value, &trace);
        if (value && trace && py->PyException_SetTraceback(value, trace) != 0)
            py->PyErr_Clear();
        prb_py_drop(type);
        prb_py_drop(trace);
        raised = value;
    }
    *judged_out = py->PyTuple_Pack(2, test, raised ? raised : py->none);
    if (!*judged_out)
        py->PyErr_Clear();
    return true;
}
