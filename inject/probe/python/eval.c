/* A job that evaluates or completes: one Job of agent.py, made, run and finished with the GIL. */
#include "inject/probe/python/eval.h"

#include <stdlib.h>
#include <string.h>

#include "inject/probe/python/job.h"

#define CAPSULE "probing.job"

struct prb_eval *prb_eval_new(const char *source, size_t len, char *name_space)
{
    PRB_AUTO_FREE char *name = name_space;
    struct prb_eval *made = calloc(1, sizeof *made + len + 1);
    if (!made)
        return NULL;
    if (len)
        memcpy(made->source, source, len);
    made->source_len = len;
    made->name_space = PRB_STEAL(name);
    return made;
}

static void eval_free(void *data)
{
    struct prb_eval *eval = data;
    free(eval->name_space);
    free(eval->function);
    free(eval);
}

/* ---- what it prints ---- */

static struct prb_py *on_send(struct prb_py *self, struct prb_py *args)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py)
        return NULL;
    struct prb_python_job *job = py->PyCapsule_GetPointer(self, CAPSULE);
    struct prb_py *bytes;
    int stream;
    char *data;
    ptrdiff_t len;
    if (!job || !py->PyArg_ParseTuple(args, "iO", &stream, &bytes) ||
        py->PyBytes_AsStringAndSize(bytes, &data, &len) != 0)
        return NULL;
    if (getpid() == job->process)
        prb_job_write(job, py, stream, data, (size_t)len);
    py->Py_IncRef(py->none);
    return py->none;
}

static void on_capsule_end(struct prb_py *capsule)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_python_job *job = py ? py->PyCapsule_GetPointer(capsule, CAPSULE) : NULL;
    if (job)
        prb_python_release(job);
}

static struct prb_py_method send_method = {"send", on_send, PRB_PY_VARARGS,
                                           "send(stream, bytes) to the client"};
/* ---- the call ---- */

/* The agent's Job of a job, a new reference. */
static struct prb_py *make(struct prb_python_job *job, const struct prb_py_api *py,
                           struct prb_py *space)
{
    const struct prb_eval *asked = job->request.data;
    PRB_AUTO(prb_py) struct prb_py *capsule = py->PyCapsule_New(job, CAPSULE, on_capsule_end);
    if (!capsule)
        return NULL;
    prb_job_hold(job);
    PRB_AUTO(prb_py) struct prb_py *send = py->PyCFunction_NewEx(&send_method, capsule, NULL);
    PRB_AUTO(prb_py) struct prb_py *mode = py->PyLong_FromUnsignedLongLong(asked->mode);
    PRB_AUTO(prb_py)
    struct prb_py *source =
        py->PyBytes_FromStringAndSize(asked->source, (ptrdiff_t)asked->source_len);
    PRB_AUTO(prb_py) struct prb_py *name = NULL;
    if (asked->name_space)
        name = py->PyUnicode_DecodeUTF8(asked->name_space, (ptrdiff_t)strlen(asked->name_space),
                                        "replace");
    else
        py->Py_IncRef(name = py->none);
    PRB_AUTO(prb_py) struct prb_py *thread = py->PyLong_FromUnsignedLongLong(asked->thread);
    PRB_AUTO(prb_py) struct prb_py *frame = py->PyLong_FromUnsignedLongLong(asked->frame);
    PRB_AUTO(prb_py) struct prb_py *cursor = py->PyLong_FromUnsignedLongLong(asked->cursor);
    PRB_AUTO(prb_py) struct prb_py *function = NULL;
    if (asked->function)
        function = py->PyUnicode_DecodeUTF8(asked->function, (ptrdiff_t)strlen(asked->function),
                                            "replace");
    else
        py->Py_IncRef(function = py->none);
    if (!send || !mode || !source || !name || !thread || !frame || !cursor || !function)
        return NULL;
    PRB_AUTO(prb_py)
    struct prb_py *args =
        py->PyTuple_Pack(8, send, mode, source, name, thread, frame, cursor, function);
    return args ? py->PyObject_CallObject(py->PyDict_GetItemString(space, "Job"), args) : NULL;
}

enum { RAISED = 1, INCOMPLETE = 2, NONE = 4, INTERRUPTED = 8 };

/* The tuple of Job.finish() into the job. */
static bool keep(struct prb_python_job *job, const struct prb_py_api *py, struct prb_py *result,
                 struct prb_error *err)
{
    int code, flags;
    struct prb_py *bytes;
    char *data;
    ptrdiff_t len;
    if (!result || !py->PyArg_ParseTuple(result, "iiO", &code, &flags, &bytes) ||
        py->PyBytes_AsStringAndSize(bytes, &data, &len) != 0)
        return prb_py_fail_raised(py, "the evaluation", err);
    if (code)
        return prb_fail(err, (enum prb_code)code, "%s", data);
    job->text = malloc((size_t)len + 1);
    if (!job->text)
        return prb_nomem(err);
    memcpy(job->text, data, (size_t)len + 1);
    job->interrupted = flags & INTERRUPTED;
    job->result = (struct prb_python_result){.raised = flags & RAISED,
                                             .incomplete = flags & INCOMPLETE,
                                             .none = flags & NONE,
                                             .text = job->text,
                                             .len = (size_t)len};
    return true;
}

static bool evaluate(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    PRB_AUTO(prb_py) struct prb_py *space = prb_job_agent(py, err);
    if (!space)
        return false;
    PRB_AUTO(prb_py) struct prb_py *instance = make(job, py, space);
    PRB_AUTO(prb_py)
    struct prb_py *method = instance ? py->PyObject_GetAttrString(instance, "run") : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *finish = method ? py->PyObject_GetAttrString(instance, "finish") : NULL;
    if (!finish)
        return prb_py_fail_raised(py, "beginning the evaluation", err);
    /* NULL: it was interrupted, and did not notice. */
    PRB_AUTO(prb_py) struct prb_py *returned = prb_job_run(job, py, method, NULL);
    if (!returned)
        py->PyErr_Clear();
    PRB_AUTO(prb_py) struct prb_py *escaped = py->PyLong_FromUnsignedLongLong(!returned);
    PRB_AUTO(prb_py) struct prb_py *args = escaped ? py->PyTuple_Pack(1, escaped) : NULL;
    PRB_AUTO(prb_py) struct prb_py *result = args ? py->PyObject_CallObject(finish, args) : NULL;
    return keep(job, py, result, err);
}

const struct prb_python_work prb_eval_work = {.run = evaluate, .release = eval_free};
