/*
 * The agent: agent.py in a namespace of its own, loaded when it is first needed, until a detach or
 * the interpreter's end.  And calls of a job's code, which can be interrupted.
 */
#include <string.h>

#include "inject/probe/part.h"
#include "inject/probe/python/job.h"
#include "inject/probe/python/sources.h"
#include "inject/probe/python/space.h"

#define CLOSE_WAIT_NOTE "waits a moment for running evaluations"

/* What is loaded, while it is; changed with the GIL and the lock. */
static struct {
    pthread_mutex_t lock;
    struct prb_py *space, *closing;
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *prb_py_raised(const struct prb_py_api *py, char *out, size_t size)
{
    PRB_AUTO(prb_py) struct prb_py *type = NULL, *value = NULL, *trace = NULL;
    py->PyErr_Fetch(&type, &value, &trace);
    PRB_AUTO(prb_py) struct prb_py *text = value ? py->PyObject_Str(value) : NULL;
    PRB_AUTO(prb_py) struct prb_py *bytes = text ? py->PyUnicode_AsUTF8String(text) : NULL;
    char *data = NULL;
    ptrdiff_t len = 0;
    if (!bytes || py->PyBytes_AsStringAndSize(bytes, &data, &len) != 0)
        data = NULL;
    py->PyErr_Clear();
    snprintf(out, size, "%s", data ? data : "no reason given");
    return out;
}

bool prb_py_fail_raised(const struct prb_py_api *py, const char *doing, struct prb_error *err)
{
    char text[201];
    return prb_fail(err, PRB_INTERNAL, "%s failed in the target: %s", doing,
                    prb_py_raised(py, text, sizeof text));
}

static struct prb_py *on_closing(struct prb_py *self, struct prb_py *args)
{
    (void)self, (void)args;
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py)
        return NULL;
    prb_parts_closing(py);
    void *saved = py->PyEval_SaveThread();
    prb_job_closing();
    py->PyEval_RestoreThread(saved);
    py->Py_IncRef(py->none);
    return py->none;
}

static struct prb_py_method closing_method = {"closing", on_closing, PRB_PY_VARARGS,
                                              CLOSE_WAIT_NOTE};

/* A namespace with the agent in it, a new reference. */
static struct prb_py *load(const struct prb_py_api *py, struct prb_error *err)
{
    PRB_AUTO(prb_py) struct prb_py *probe = NULL;
    PRB_AUTO(prb_py) struct prb_py *space = prb_py_space(py, "", &probe, err);
    const struct prb_py_source *source = prb_py_source("<probing agent>");
    if (!space || !prb_py_run(py, source, space))
        return PRB_NULL(prb_py_fail_raised(py, "loading the agent", err));
    return PRB_STEAL(space);
}

/* Call the agent's function with the closing callback: begin or detach. */
static bool tell(const struct prb_py_api *py, struct prb_py *space, const char *function,
                 struct prb_py *closing, struct prb_error *err)
{
    PRB_AUTO(prb_py) struct prb_py *args = py->PyTuple_Pack(1, closing);
    PRB_AUTO(prb_py)
    struct prb_py *done =
        args ? py->PyObject_CallObject(py->PyDict_GetItemString(space, function), args) : NULL;
    return done || prb_py_fail_raised(py, function, err);
}

static void drop_agent(void)
{
    pthread_mutex_lock(&agent.lock);
    PRB_AUTO(prb_py) struct prb_py *space = PRB_STEAL(agent.space);
    PRB_AUTO(prb_py) struct prb_py *closing = PRB_STEAL(agent.closing);
    pthread_mutex_unlock(&agent.lock);
}

struct prb_py *prb_job_agent(const struct prb_py_api *py, struct prb_error *err)
{
    pthread_mutex_lock(&agent.lock);
    struct prb_py *space = agent.space;
    if (space)
        py->Py_IncRef(space);
    pthread_mutex_unlock(&agent.lock);
    if (space)
        return space;
    /* Loading may let other threads run: the first that is ready stays. */
    PRB_AUTO(prb_py) struct prb_py *mine = load(py, err);
    PRB_AUTO(prb_py) struct prb_py *closing = py->PyCFunction_NewEx(&closing_method, NULL, NULL);
    if (!mine || !closing)
        return NULL;
    pthread_mutex_lock(&agent.lock);
    bool first = !agent.space;
    if (first) {
        agent.space = mine, agent.closing = closing;
        py->Py_IncRef(mine), py->Py_IncRef(closing);
    }
    space = agent.space;
    py->Py_IncRef(space);
    pthread_mutex_unlock(&agent.lock);
    if (!first || tell(py, space, "begin", closing, err))
        return space;
    prb_py_drop(space);
    drop_agent(); /* the next one who asks tries again */
    return NULL;
}

static bool detach(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    (void)job;
    prb_parts_detach(py);
    pthread_mutex_lock(&agent.lock);
    PRB_AUTO(prb_py) struct prb_py *space = PRB_STEAL(agent.space);
    PRB_AUTO(prb_py) struct prb_py *closing = PRB_STEAL(agent.closing);
    pthread_mutex_unlock(&agent.lock);
    return !space || tell(py, space, "detach", closing, err);
}

const struct prb_python_work prb_python_detach_work = {.run = detach, .always = true};

struct prb_py *prb_job_run(struct prb_python_job *job, const struct prb_py_api *py,
                           struct prb_py *callable, struct prb_py *args)
{
    pthread_mutex_lock(&job->lock);
    job->ident = py->PyThread_get_thread_ident();
    job->interruptible = true;
    pthread_mutex_unlock(&job->lock);
    struct prb_py *done = py->PyObject_CallObject(callable, args);
    if (getpid() == job->process) {
        pthread_mutex_lock(&job->lock);
        job->interruptible = false;
        bool interrupted = job->stop;
        pthread_mutex_unlock(&job->lock);
        if (interrupted) /* the thread may be the program's */
            prb_py_withdraw(py, job->ident);
    }
    if (!done || !py->PyErr_Occurred())
        return done;
    prb_py_drop(done);
    return NULL;
}

void prb_job_locate(struct prb_python_job *job, const struct prb_py_api *py)
{
    PRB_AUTO(prb_py) struct prb_py *space = prb_job_agent(py, NULL);
    PRB_AUTO(prb_py) struct prb_py *ident = py->PyLong_FromUnsignedLongLong(job->ident);
    PRB_AUTO(prb_py) struct prb_py *args = space && ident ? py->PyTuple_Pack(1, ident) : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *result =
        args ? py->PyObject_CallObject(py->PyDict_GetItemString(space, "place"), args) : NULL;
    char *data;
    ptrdiff_t len;
    if (!result || py->PyBytes_AsStringAndSize(result, &data, &len) != 0) {
        py->PyErr_Clear();
        return;
    }
    pthread_mutex_lock(&job->lock);
    size_t kept = (size_t)len < sizeof job->where ? (size_t)len : sizeof job->where - 1;
    memcpy(job->where, data, kept);
    job->where[kept] = '\0';
    pthread_mutex_unlock(&job->lock);
}

void prb_job_call_forked(void)
{
    pthread_mutex_init(&agent.lock, NULL);
    /* Its locks are as the parent's threads held them: a new one is loaded when this process is
     * asked. */
    agent.space = agent.closing = NULL;
}
