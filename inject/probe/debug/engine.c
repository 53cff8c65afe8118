/* What the debugger's Python can ask of C: probe.functions (debug.h). */
#include <stdio.h>
#include <string.h>

#include "inject/probe/debug/birth.h"
#include "inject/probe/debug/session.h"
#include "inject/probe/python/space.h"
#include "inject/probe/server/request.h"

#define LINES_MAX 100000 /* planted in one code object */

static struct prb_debug_session *const session = &prb_debug_session;

static struct prb_py *nothing(const struct prb_py_api *py)
{
    py->Py_IncRef(py->none);
    return py->none;
}

/* NULL with an exception: from what failed, or none is set yet. */
static struct prb_py *done(const struct prb_py_api *py, bool ok, const struct prb_error *err)
{
    if (ok)
        return nothing(py);
    if (!py->PyErr_Occurred())
        py->PyErr_SetString(*py->runtime_error, err->text);
    return NULL;
}

static const struct prb_debug_mechanism *mechanism(const struct prb_py_api *py)
{
    if (!session->mechanism && !py->PyErr_Occurred())
        py->PyErr_SetString(*py->runtime_error,
                            session->without[0] ? session->without : "the debug session has ended");
    return session->mechanism;
}

/* ---- events for the client ---- */

static bool send(struct prb_request *request, const char *text, size_t len, bool important)
{
    enum prb_sent sent = prb_request_item(request, text, len);
    if (sent == PRB_SENT_FULL && important)
        sent = prb_request_item_now(request, text, len);
    return sent != PRB_SENT_FULL;
}

void prb_debug_emit(const char *text, size_t len, bool important)
{
    pthread_mutex_lock(&session->lock);
    struct prb_request *request =
        session->state == PRB_DEBUG_OPEN ? prb_request_hold(session->request) : NULL;
    unsigned long dropped = session->dropped;
    pthread_mutex_unlock(&session->lock);
    if (!request)
        return;
    char note[160];
    int note_len = 0;
    if (dropped)
        note_len = snprintf(note, sizeof note,
                            "{\"event\":\"output\",\"body\":{\"category\":\"console\",\"output\":"
                            "\"[%lu events were left out]\\n\"}}",
                            dropped);
    if (note_len && prb_request_item(request, note, (size_t)note_len) == PRB_SENT)
        dropped = 0;
    if (!send(request, text, len, important))
        dropped++;
    pthread_mutex_lock(&session->lock);
    session->dropped = dropped;
    pthread_mutex_unlock(&session->lock);
    prb_request_release(request);
}

static struct prb_py *emit(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *bytes;
    char *text;
    ptrdiff_t len;
    int important = 1;
    if (!py || !py->PyArg_ParseTuple(args, "O|p", &bytes, &important) ||
        py->PyBytes_AsStringAndSize(bytes, &text, &len) != 0)
        return NULL;
    prb_debug_emit(text, (size_t)len, important);
    struct prb_debug_parked *here = important ? prb_debug_here(py) : NULL;
    if (here)
        here->emitted = true;
    return nothing(py);
}

/* ---- values ---- */

static struct prb_py *repr(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *value;
    double seconds;
    if (!py || !py->PyArg_ParseTuple(args, "Od", &value, &seconds))
        return NULL;
    return prb_job_repr(py, value, (uint32_t)(seconds * 1000));
}

/* ---- the mechanism ---- */

static struct prb_py *plant(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *code, *lines;
    if (!py || !py->PyArg_ParseTuple(args, "OO", &code, &lines) || !mechanism(py))
        return NULL;
    ptrdiff_t count = py->PyTuple_Size(lines);
    if (count < 0 || count > LINES_MAX)
        return NULL;
    PRB_AUTO_FREE int *numbers = calloc((size_t)count + 1, sizeof *numbers);
    struct prb_error err = {.text = "no memory for lines"};
    for (ptrdiff_t i = 0; numbers && i < count; i++)
        numbers[i] = (int)py->PyLong_AsLong(py->PyTuple_GetItem(lines, i));
    bool ok = numbers && !py->PyErr_Occurred() &&
              session->mechanism->plant(py, code, numbers, (size_t)count);
    return done(py, ok, &err);
}

static struct prb_py *conditions(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *code, *given;
    if (!py || !py->PyArg_ParseTuple(args, "OO", &code, &given) || !mechanism(py))
        return NULL;
    prb_debug_drop_conditions(code);
    ptrdiff_t count = session->mechanism->local ? py->PyTuple_Size(given) : 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        struct prb_py *test, *locals;
        int line;
        if (!py->PyArg_ParseTuple(py->PyTuple_GetItem(given, i), "iOO", &line, &test, &locals))
            return NULL;
        prb_debug_add_condition(py, code, line, test, locals);
    }
    return nothing(py);
}

static struct prb_py *watch_new_code(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    int on;
    if (!py || !py->PyArg_ParseTuple(args, "p", &on) || !mechanism(py))
        return NULL;
    struct prb_error err = {.text = "watching new code failed"};
    return done(py, session->mechanism->watch_new_code(py, on), &err);
}

static struct prb_py *watch_exceptions(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    int mask;
    if (!py || !py->PyArg_ParseTuple(args, "i", &mask) || !mechanism(py))
        return NULL;
    struct prb_error err = {.text = "watching exceptions failed"};
    session->exceptions = (unsigned)mask & (PRB_DEBUG_RAISE | PRB_DEBUG_UNWIND);
    return done(py, session->mechanism->watch_exceptions(py, session->exceptions), &err);
}

/* The frame that a thread steps; py.none: as it was. */
static void keep_frame(const struct prb_py_api *py, unsigned long ident, struct prb_py *frame)
{
    for (unsigned i = 0; i < session->step_count && frame != py->none; i++) {
        struct prb_debug_step *one = &session->steps[i];
        if (one->ident != ident || one->frame == frame)
            continue;
        PRB_AUTO(prb_py) struct prb_py *last = one->frame;
        py->Py_IncRef(frame);
        one->frame = frame;
    }
}

/* Change what one thread's frames of a code object are stepped for; the union over all threads. */
static bool keep_step(const struct prb_py_api *py, unsigned long ident, struct prb_py *code,
                      unsigned events, unsigned *union_out)
{
    unsigned all = 0, at = session->step_count;
    for (unsigned i = 0; i < session->step_count; i++) {
        if (session->steps[i].code != code)
            continue;
        if (session->steps[i].ident == ident)
            at = i;
        else
            all |= session->steps[i].events;
    }
    *union_out = all | events;
    if (at == PRB_DEBUG_STEPS_MAX)
        return false;
    if (at == session->step_count && events) {
        py->Py_IncRef(code);
        session->steps[session->step_count++] =
            (struct prb_debug_step){.ident = ident, .code = code, .events = events};
    } else if (at < session->step_count && events) {
        session->steps[at].events = events;
    } else if (at < session->step_count) {
        PRB_AUTO(prb_py) struct prb_py *frame = session->steps[at].frame;
        session->steps[at] = session->steps[--session->step_count];
        prb_py_drop(code); /* the caller has it still */
    }
    return true;
}

static struct prb_py *step(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    unsigned long ident;
    struct prb_py *code, *frame;
    int events;
    if (!py || !py->PyArg_ParseTuple(args, "kOiO", &ident, &code, &events, &frame) ||
        !mechanism(py))
        return NULL;
    struct prb_error err = {.text = "stepping failed"};
    unsigned all = 0;
    bool ok = keep_step(py, ident, code, (unsigned)events, &all) &&
              session->mechanism->step(py, code, all);
    keep_frame(py, ident, frame);
    return done(py, ok, &err);
}

/* ---- the gate ---- */

static bool set_gate(const struct prb_py_api *py, bool armed)
{
    bool was = session->armed;
    pthread_mutex_lock(&session->lock);
    session->armed = armed;
    pthread_mutex_unlock(&session->lock);
    session->pass_count = 0;
    return was == armed || !session->mechanism || session->mechanism->gate(py, armed);
}

void prb_debug_close_gate(const struct prb_py_api *py)
{
    if (!session->armed && !set_gate(py, true))
        py->PyErr_Clear();
}

static struct prb_py *gate(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    int armed;
    if (!py || !py->PyArg_ParseTuple(args, "p", &armed) || !mechanism(py))
        return NULL;
    struct prb_error err = {.text = "the gate failed"};
    bool ok = set_gate(py, armed);
    if (!armed)
        prb_debug_let_go(0, true);
    return done(py, ok, &err);
}

static struct prb_py *resume(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    unsigned long ident;
    if (!py || !py->PyArg_ParseTuple(args, "k", &ident))
        return NULL;
    struct prb_error err = {.text = "the gate failed"};
    bool ok = ident ? session->pass_count < PRB_DEBUG_PASSES_MAX : set_gate(py, false);
    if (ident && ok)
        session->passes[session->pass_count++] = ident;
    prb_debug_let_go(ident, false);
    return done(py, ok, &err);
}

static struct prb_py *parked(struct prb_py *self, struct prb_py *args)
{
    (void)self, (void)args;
    const struct prb_py_api *py = prb_py_api(NULL);
    return py ? prb_debug_parked_list(py) : NULL;
}

/* ---- others ---- */

static struct prb_py *yield_gil(struct prb_py *self, struct prb_py *args)
{
    (void)self, (void)args;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py)
        return NULL;
    prb_py_yield_gil(py);
    return nothing(py);
}

/* ---- exceptions ---- */

static struct prb_py *keep_pending(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *error;
    if (!py || !py->PyArg_ParseTuple(args, "O", &error))
        return NULL;
    return py->PyLong_FromLong(prb_debug_keep_caught(py, prb_debug_here(py), error));
}

static struct prb_py *native_id(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    unsigned long ident;
    if (!py || !py->PyArg_ParseTuple(args, "k", &ident))
        return NULL;
    return py->PyLong_FromLong(prb_debug_native_id(ident));
}

static struct prb_py *save_locals(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *frame;
    if (!py || !py->PyArg_ParseTuple(args, "O", &frame))
        return NULL;
    if (py->PyFrame_LocalsToFast)
        py->PyFrame_LocalsToFast(frame, 1);
    return nothing(py);
}

static struct prb_py *found(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *frame, *value;
    int event, line;
    if (!py || !py->PyArg_ParseTuple(args, "iOiO", &event, &frame, &line, &value))
        return NULL;
    PRB_AUTO(prb_py) struct prb_py *code = py->PyObject_GetAttrString(frame, "f_code");
    if (!code)
        return NULL;
    struct prb_debug_place place = {
        .event = (enum prb_debug_event)event,
        .frame = frame,
        .code = code,
        .line = line,
        .value = value,
    };
    return prb_debug_found(py, &place) ? nothing(py) : NULL;
}

static struct prb_py_method methods[] = {
    {"emit", emit, PRB_PY_VARARGS, "emit(bytes, important=True): one event"},
    {"plant", plant, PRB_PY_VARARGS, "plant(code, lines)"},
    {"conditions", conditions, PRB_PY_VARARGS,
     "conditions(code, ((line, condition, locals), ...))"},
    {"watch_new_code", watch_new_code, PRB_PY_VARARGS, "watch_new_code(on)"},
    {"watch_exceptions", watch_exceptions, PRB_PY_VARARGS, "watch_exceptions(mask)"},
    {"step", step, PRB_PY_VARARGS,
     "step(ident, code, events, the frame that the thread steps or None)"},
    {"gate", gate, PRB_PY_VARARGS, "gate(armed)"},
    {"parked", parked, PRB_PY_VARARGS, "parked() -> [(ident, native id, frame, reason)]"},
    {"resume", resume, PRB_PY_VARARGS, "resume(ident); 0: all, and the gate opens"},
    {"yield_gil", yield_gil, PRB_PY_VARARGS, "yield_gil(): other threads run for a moment"},
    {"found", found, PRB_PY_VARARGS, "found(event, frame, line, value)"},
    {"keep_pending", keep_pending, PRB_PY_VARARGS,
     "keep_pending(exception): whether it is the program's"},
    {"repr", repr, PRB_PY_VARARGS, "repr(value, seconds) -> str, or None"},
    {"native_id", native_id, PRB_PY_VARARGS, "native_id(ident) -> gettid(2)"},
    {"save_locals", save_locals, PRB_PY_VARARGS, "save_locals(frame)"},
    {"take_children", prb_debug_take_children, PRB_PY_VARARGS, "take_children(name, seconds)"},
    {"born", prb_debug_born, PRB_PY_VARARGS, "born(): for os.register_at_fork()"},
    {"child_waits", prb_debug_child_waits, PRB_PY_VARARGS, "child_waits() -> bool"},
    {"set_variable", prb_debug_set_variable, PRB_PY_VARARGS, "set_variable(name, value)"},
    {"child_goes", prb_debug_child_goes, PRB_PY_VARARGS, "child_goes()"},
};

struct prb_py *prb_debug_functions(const struct prb_py_api *py)
{
    PRB_AUTO(prb_py) struct prb_py *dict = py->PyDict_New();
    bool ok = dict;
    for (size_t i = 0; ok && i < sizeof methods / sizeof *methods; i++)
        ok = prb_py_give(py, dict, methods[i].name, py->PyCFunction_NewEx(&methods[i], NULL, NULL));
    const char *name = session->mechanism ? session->mechanism->name : "";
    ok = ok && prb_py_give(py, dict, "mechanism", prb_py_text(py, name)) &&
         prb_py_give(py, dict, "without", prb_py_text(py, session->without)) &&
         py->PyDict_SetItemString(dict, "Interrupted", prb_py_interruption(py)) == 0;
    return ok ? PRB_STEAL(dict) : NULL;
}

struct prb_py *prb_debug_methods(const struct prb_py_api *py)
{
    static const struct {
        const char *name, *part;
    } table[] = {
#define M(name, where, part) {#name, #part},
#include "inject/probe/debug/methods.def"
#undef M
    };
    PRB_AUTO(prb_py) struct prb_py *dict = py->PyDict_New();
    bool ok = dict;
    for (size_t i = 0; ok && i < sizeof table / sizeof *table; i++)
        ok = prb_py_give(py, dict, table[i].name, prb_py_text(py, table[i].part));
    return ok ? PRB_STEAL(dict) : NULL;
}
