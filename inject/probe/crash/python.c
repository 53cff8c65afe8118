/*
 * The part of the crash handler that is Python (crash.py): put in and taken out by jobs of
 * their own, as anything that needs the GIL.
 */
#include <string.h>

#include "base/secret.h"
#include "inject/probe/crash/crash.h"
#include "inject/probe/libc.h"
#include "inject/probe/python/job.h"
#include "inject/probe/python/sources.h"
#include "inject/probe/python/space.h"
#include "inject/probe/thread.h"

#define GIL_MS 5000
#define BEGIN_MS 60000u /* that an interpreter may take to begin */
#define LOOK_NS 10000000

#define SECRET_LEAST 4 /* bytes; shorter ones stand everywhere */

/* ---- what it calls ---- */

struct masking {
    const char *environment;
    struct prb_buf text;
};

static void mask_value(void *context, struct prb_span span)
{
    struct masking *masking = context;
    const char *value = masking->environment + span.at, *from = masking->text.data, *at;
    PRB_AUTO(prb_buf) struct prb_buf masked = {0};
    if (span.len < SECRET_LEAST || !from)
        return;
    size_t left = masking->text.len;
    for (; (at = memmem(from, left, value, span.len));
         left -= (size_t)(at - from) + span.len, from = at + span.len) {
        prb_buf_add(&masked, from, (size_t)(at - from));
        prb_buf_adds(&masked, PRB_MASK);
    }
    if (from == masking->text.data)
        return;
    prb_buf_add(&masked, from, left);
    prb_buf_deinit(&masking->text);
    masking->text = masked;
    masked = (struct prb_buf){0};
}

/* Mask the reason here: the note that is written when no dump can be has no other mask. */
static void dump_masked(const char *reason, size_t len, const char *environment,
                        size_t environment_len)
{
    struct masking masking = {.environment = environment};
    prb_secret_mask(PRB_SECRET_TEXT, reason, len, &masking.text);
    prb_secret_each(PRB_SECRET_ENVIRONMENT, environment, environment_len, mask_value, &masking);
    prb_crash_dump(PRB_CRASH_EXCEPTION, 0, NULL, NULL,
                   prb_buf_ok(&masking.text) ? masking.text.data : "");
    prb_buf_deinit(&masking.text);
}

/* With the GIL, so that no Python moves while the process is read. */
static struct prb_py *on_crashed(struct prb_py *self, struct prb_py *args)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *reason, *environment;
    char *text, *variables;
    ptrdiff_t len, variables_len;
    (void)self;
    if (!py || !py->PyArg_ParseTuple(args, "OO", &reason, &environment) ||
        py->PyBytes_AsStringAndSize(reason, &text, &len) != 0 ||
        py->PyBytes_AsStringAndSize(environment, &variables, &variables_len) != 0)
        return NULL;
    if (prb_crash_is_on()) {
        dump_masked(text, (size_t)len, variables, (size_t)variables_len);
        void *saved = py->PyEval_SaveThread();
        prb_crash_hold();
        py->PyEval_RestoreThread(saved);
    }
    py->Py_IncRef(py->none);
    return py->none;
}

static struct prb_py *on_stack(struct prb_py *self, struct prb_py *args)
{
    (void)self, (void)args;
    if (prb_crash_is_on())
        prb_crash_stack();
    return prb_py_nothing();
}

static struct prb_py *on_again(struct prb_py *self, struct prb_py *args)
{
    (void)self, (void)args;
    prb_crash_take_again();
    return prb_py_nothing();
}

static struct prb_py_method crashed_method = {"crashed", on_crashed, PRB_PY_VARARGS, "a dump"};
static struct prb_py_method stack_method = {"stack", on_stack, PRB_PY_VARARGS,
                                            "an alternate signal stack"};
static struct prb_py_method again_method = {"again", on_again, PRB_PY_VARARGS,
                                            "take the signals back"};

/* ---- with the GIL ---- */

static int threads_hooked; /* 0: not yet, 1: they are, -1: it failed */

/* Between two instructions of the program; space: that of crash.py, a reference that is ours. */
static int in_main_thread(void *space)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py)
        return 0;
    PRB_AUTO(prb_py) struct prb_py *mine = space;
    if (!prb_crash_is_on())
        return 0;
    prb_crash_stack();
    prb_py_inside(1);
    struct prb_py *function = py->PyDict_GetItemString(mine, "hook_threads");
    PRB_AUTO(prb_py)
    struct prb_py *done = function ? py->PyObject_CallObject(function, NULL) : NULL;
    if (!done)
        py->PyErr_Clear(); /* what threading imports may be half imported itself just now */
    __atomic_store_n(&threads_hooked, done ? 1 : -1, __ATOMIC_RELEASE);
    prb_py_inside(-1);
    return 0;
}

/* The namespace of crash.py after it ran; with the GIL. */
static struct prb_py *hooks;

static bool load(const struct prb_py_api *py, struct prb_error *err)
{
    PRB_AUTO(prb_py) struct prb_py *probe = NULL;
    PRB_AUTO(prb_py) struct prb_py *space = prb_py_space(py, "crash", &probe, err);
    const struct prb_py_source *source = prb_py_source("<probing crash>");
    bool ok =
        space &&
        prb_py_give(py, probe, "crashed", py->PyCFunction_NewEx(&crashed_method, NULL, NULL)) &&
        prb_py_give(py, probe, "stack", py->PyCFunction_NewEx(&stack_method, NULL, NULL)) &&
        prb_py_give(py, probe, "again", py->PyCFunction_NewEx(&again_method, NULL, NULL)) &&
        prb_py_run(py, source, space);
    if (ok && !hooks) /* another thread may have loaded it meanwhile */
        hooks = PRB_STEAL(space);
    return hooks || prb_py_fail_raised(py, "loading the crash hooks", err);
}

static bool call(const struct prb_py_api *py, const char *name, struct prb_error *err)
{
    PRB_AUTO(prb_py) struct prb_py *space = hooks;
    py->Py_IncRef(space);
    struct prb_py *function = py->PyDict_GetItemString(space, name);
    PRB_AUTO(prb_py)
    struct prb_py *done = function ? py->PyObject_CallObject(function, NULL) : NULL;
    return done || prb_py_fail_raised(py, name, err);
}

static bool put_in(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    (void)job;
    if ((!hooks && !load(py, err)) || !call(py, "begin", err))
        return false;
    if (hooks && py->Py_AddPendingCall) {
        py->Py_IncRef(hooks);
        __atomic_store_n(&threads_hooked, 0, __ATOMIC_RELEASE);
        if (py->Py_AddPendingCall(in_main_thread, hooks) != 0)
            prb_py_drop(hooks);
    }
    return true;
}

static bool take_out(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    (void)job;
    return !hooks || call(py, "end", err);
}

void prb_crash_python_detach(const struct prb_py_api *py)
{
    if (hooks && !call(py, "end", NULL))
        py->PyErr_Clear();
    PRB_AUTO(prb_py) struct prb_py *last = PRB_STEAL(hooks);
}

/* They are the parent's. */
void prb_crash_python_forked(void) { hooks = NULL; }

/* ---- the job ---- */

static bool run_job(bool on, uint32_t gil_ms, uint32_t wait_ms)
{
    static const struct prb_python_work in = {.run = put_in, .always = true};
    static const struct prb_python_work out = {.run = take_out, .always = true};
    const struct prb_python_request request = {.work = on ? &in : &out, .gil_ms = gil_ms};
    return prb_python_wait(&request, wait_ms, NULL);
}

/* A preloaded probe starts before the interpreter, and no event says when that can be called: the
 * first import may still fail (3.6 reports itself as started before it can do anything). */
static void *await_python(void *nothing_here)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    uint64_t end = prb_clock_ns() + (uint64_t)BEGIN_MS * PRB_JOB_MS;
    (void)nothing_here;
    int threads = -1;
    while (prb_crash_is_on() && threads != 1 && prb_clock_ns() < end) {
        if (threads < 0 && prb_py_api(NULL) && run_job(true, BEGIN_MS, BEGIN_MS))
            threads = 0;
        nanosleep(&pause, NULL);
        if (threads == 0)
            threads = __atomic_load_n(&threads_hooked, __ATOMIC_ACQUIRE);
    }
    return NULL;
}

void prb_crash_python(bool on, uint32_t wait_ms)
{
    if (prb_py_api(NULL))
        run_job(on, GIL_MS, wait_ms);
    else if (on)
        prb_thread_start("probing-start", await_python, NULL, NULL);
}
