/*
 * DEBUG and DEBUG_CALL: who owns the session, its calls as jobs (python.h), and which thread runs
 * them.
 */
#include "inject/probe/server/request.h"

#include <stdio.h>
#include <string.h>

#include "inject/probe/debug/session.h"
#include "inject/probe/part.h"
#include "inject/probe/python/bytecode.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"

#define END_MS 1000u
#define GIL_S 10.0 /* a debugger's user waits longer than one evaluation's */
#define RESULT_MAX (PRB_MESSAGE_MAX - 1024)

static struct prb_debug_session *const session = &prb_debug_session;

/* ---- DEBUG ---- */

/* With the lock: it is the session's now. */
static void open_session(struct prb_request *request)
{
    session->request = request;
    session->dropped = 0;
    session->state = PRB_DEBUG_OPEN;
}

static bool take_out(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    (void)job, (void)err;
    prb_debug_take_out(py);
    return true;
}
static const struct prb_python_work end_work = {.run = take_out, .always = true};

/* Take the session out, as soon as the GIL is there. */
static void start_end(void)
{
    const struct prb_python_request request = {.work = &end_work, .gil_ms = END_MS};
    prb_python_release(prb_python_start(&request, NULL, NULL));
}

/* Of a client's "uid=UID by=PID (NAME)", which the log has; for people. */
static void refuse(struct prb_request *request, const char *who)
{
    unsigned uid;
    int pid;
    char name[64];
    if (sscanf(who, "uid=%u by=%d (%63[^)])", &uid, &pid, name) == 3)
        prb_request_failf(request, PRB_BUSY, "one debugger at a time: disconnect that one",
                          "the process is being debugged by process %d (%s) of user %u", pid, name,
                          uid);
    else
        prb_request_failf(request, PRB_BUSY, "one debugger at a time: disconnect that one",
                          "the process is being debugged by %s", who);
}

static void begin_debug(struct prb_request *request, const struct prb_message *message)
{
    const char *blob = "";
    size_t len = 0;
    prb_message_text(message, PRB_FLD_BYTECODE, &blob, &len);
    PRB_AUTO(prb_bytecode_blob) struct prb_bytecode_blob *bytecode = prb_bytecode_copy(blob, len);
    char who[sizeof session->who];
    snprintf(who, sizeof who, "%s", request->client ? request->client->who : "");
    pthread_mutex_lock(&session->lock);
    bool opened = session->state == PRB_DEBUG_NONE;
    bool waits = session->state == PRB_DEBUG_ENDING && !session->waiting;
    if (opened)
        open_session(prb_request_hold(request));
    if (waits)
        session->waiting = prb_request_hold(request);
    if (opened || waits) {
        memcpy(session->who, who, sizeof who);
        prb_bytecode_use(PRB_STEAL(bytecode));
    } else {
        memcpy(who, session->who, sizeof who);
    }
    pthread_mutex_unlock(&session->lock);
    if (opened)
        prb_request_item(request, "", 0);
    else if (waits)
        start_end();
    else
        refuse(request, who);
}

void prb_debug_next(void)
{
    pthread_mutex_lock(&session->lock);
    struct prb_request *next =
        session->state == PRB_DEBUG_NONE ? PRB_STEAL(session->waiting) : NULL;
    if (next)
        open_session(prb_request_hold(next));
    pthread_mutex_unlock(&session->lock);
    if (!next)
        return;
    prb_request_item(next, "", 0);
    prb_request_release(next);
}

/* However it ends: the END that its client may still wait for comes when all is out. */
static void cancel_debug(struct prb_request *request, enum prb_cancel why)
{
    (void)why;
    pthread_mutex_lock(&session->lock);
    bool waited = session->waiting == request;
    bool owns = session->request == request;
    if (waited)
        session->waiting = NULL;
    pthread_mutex_unlock(&session->lock);
    if (waited) {
        prb_request_end(request, NULL);
        prb_request_release(request);
    }
    if (owns) {
        prb_debug_end();
        start_end();
    }
}

static const struct prb_request_kind debug_kind = {
    .type = PRB_MSG_DEBUG,
    .name = "debug",
    .logged = true,
    .runs_python = true,
    .begin = begin_debug,
    .cancel = cancel_debug,
};

/* ---- DEBUG_CALL ---- */

struct call {
    uint64_t thread; /* a parked one that is to run it, gettid(2); 0: any thread */
    char *method;
    size_t len;
    char arguments[]; /* JSON */
};

static void call_free(void *data)
{
    struct call *call = data;
    free(call->method);
    free(call);
}

static struct call *call_new(const struct prb_message *message)
{
    const char *text = "{}";
    size_t len = 2;
    if (prb_message_text(message, PRB_FLD_VALUE, &text, &len) && !len)
        text = "{}", len = 2;
    struct call *call = calloc(1, sizeof *call + len);
    char *method = call ? prb_message_copy(message, PRB_FLD_KEY) : NULL;
    if (!method) {
        free(call);
        return NULL;
    }
    memcpy(call->arguments, text, len);
    call->len = len;
    call->method = method;
    prb_message_number(message, PRB_FLD_THREAD, &call->thread);
    return call;
}

static bool call_output(void *context, int stream, const char *text, size_t len)
{
    (void)context, (void)stream, (void)text, (void)len;
    return true;
}

static void call_done(void *context, const struct prb_python_result *result)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    prb_fields_number(&fields, PRB_FLD_MICROSECONDS, result->microseconds);
    prb_fields_text(&fields, PRB_FLD_TEXT, result->text, result->len);
    prb_request_end(context, &fields);
    prb_request_release(context);
}

static void call_failed(void *context, const struct prb_error *err)
{
    prb_request_fail(context, err);
    prb_request_release(context);
}

static void release_job(void *data) { prb_python_release(data); }

static bool is_owner(const struct prb_request *request)
{
    pthread_mutex_lock(&session->lock);
    pthread_mutex_lock(&prb_server.lock);
    bool is = session->state == PRB_DEBUG_OPEN && session->request && request->client &&
              session->request->client == request->client;
    pthread_mutex_unlock(&prb_server.lock);
    pthread_mutex_unlock(&session->lock);
    return is;
}

static uint32_t milliseconds(const struct prb_message *message, enum prb_message_field key,
                             const char *setting, double otherwise)
{
    uint64_t value = 0;
    prb_message_number(message, key, &value);
    if (!value)
        value = (uint64_t)((setting ? prb_settings_number(setting, otherwise) : otherwise) * 1000);
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* ---- its job ---- */

/* Whether a parked thread took it. */
static bool hand(struct prb_python_job *job)
{
    const struct call *call = job->request.data;
    if (!call->thread)
        return false;
    bool taken = false;
    pthread_mutex_lock(&session->lock);
    for (struct prb_debug_parked *parked = session->parked; parked && !taken;
         parked = parked->next) {
        if ((uint64_t)parked->tid != call->thread || !parked->waits || parked->resume)
            continue;
        if (prb_job_is_left_behind(parked->runs))
            break; /* another thread serves, which runs no code of the program for this one */
        struct prb_python_job **last = &parked->jobs;
        while (*last)
            last = &(*last)->handed;
        prb_job_hold(job);
        *last = job;
        pthread_cond_signal(&parked->changed);
        taken = true;
    }
    pthread_mutex_unlock(&session->lock);
    return taken;
}

/* The exception of a call as the request's failure. */
static bool fail_raised(struct prb_python_job *job, const struct prb_py_api *py,
                        struct prb_error *err)
{
    if (job->stop &&
        py->PyErr_GivenExceptionMatches(py->PyErr_Occurred(), *py->keyboard_interrupt)) {
        py->PyErr_Clear();
        if (job->stop == PRB_JOB_OVERDUE)
            return prb_fail(err, PRB_TIMEOUT, "it was interrupted after %u ms",
                            job->request.time_ms);
        return prb_fail(err, PRB_TIMEOUT, "it was cancelled");
    }
    struct prb_py *type, *value, *trace;
    py->PyErr_Fetch(&type, &value, &trace);
    PRB_AUTO(prb_py)
    struct prb_py *number = value ? py->PyObject_GetAttrString(value, "code") : NULL;
    long code = number ? py->PyLong_AsLong(number) : 0;
    py->PyErr_Clear();
    py->PyErr_Restore(type, value, trace);
    char text[sizeof err->text];
    prb_py_raised(py, text, sizeof text);
    return prb_fail(err, code > PRB_OK && code <= PRB_INTERNAL ? (enum prb_code)code : PRB_INTERNAL,
                    "%s", text);
}

static bool keep(struct prb_python_job *job, const struct prb_py_api *py, struct prb_py *answered,
                 struct prb_error *err)
{
    char *data;
    ptrdiff_t len;
    if (py->PyBytes_AsStringAndSize(answered, &data, &len) != 0)
        return fail_raised(job, py, err);
    if (len > (ptrdiff_t)RESULT_MAX)
        return prb_fail(err, PRB_USAGE, "the answer is larger than %u MiB", PRB_MESSAGE_MAX >> 20);
    job->text = malloc((size_t)len + 1);
    if (!job->text)
        return prb_nomem(err);
    memcpy(job->text, data, (size_t)len + 1);
    job->result = (struct prb_python_result){.text = job->text, .len = (size_t)len};
    return true;
}

/* With the GIL. */
static bool answer(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    prb_py_yield_gil(py); /* for what the last one left */
    if (!prb_debug_load(py, err))
        return false;
    const struct call *asked = job->request.data;
    PRB_AUTO(prb_py) struct prb_py *call = session->call;
    py->Py_IncRef(call);
    PRB_AUTO(prb_py)
    struct prb_py *method =
        py->PyUnicode_DecodeUTF8(asked->method, (ptrdiff_t)strlen(asked->method), "replace");
    PRB_AUTO(prb_py)
    struct prb_py *arguments =
        py->PyBytes_FromStringAndSize(asked->arguments, (ptrdiff_t)asked->len);
    PRB_AUTO(prb_py)
    struct prb_py *args = method && arguments ? py->PyTuple_Pack(2, method, arguments) : NULL;
    struct prb_debug_parked *here = prb_debug_here(py);
    if (here)
        prb_debug_take_signals(py, here);
    PRB_AUTO(prb_py) struct prb_py *answered = args ? prb_job_run(job, py, call, args) : NULL;
    if (answered)
        return keep(job, py, answered, err);
    if (here && prb_debug_keep_raised(py, here, true))
        return prb_fail(err, PRB_INTERNAL,
                        "a signal handler of the program raised an exception meanwhile: the "
                        "program gets it when the thread goes on");
    return fail_raised(job, py, err);
}

static const struct prb_python_work call_work = {
    .run = answer,
    .release = call_free,
    .hand = hand,
    .interruption = prb_py_interruption,
    .urgent = true,
};

/* ---- its request ---- */

static void begin_call(struct prb_request *request, const struct prb_message *message)
{
    if (!is_owner(request)) {
        prb_request_failf(request, PRB_USAGE, "begin it with DEBUG, on the same connection",
                          "there is no debug session of this connection");
        return;
    }
    struct prb_python_request asked = {
        .work = &call_work,
        .data = call_new(message),
        .gil_ms = milliseconds(message, PRB_FLD_GIL_TIMEOUT_MS, NULL, GIL_S),
        .time_ms = milliseconds(message, PRB_FLD_TIMEOUT_MS, "probing.eval.timeout", 0),
    };
    struct prb_python_sink sink = {call_output, call_done, call_failed, prb_request_hold(request)};
    struct prb_error err = {.code = PRB_NOMEM, .text = "the target is out of memory"};
    struct prb_python_job *job = asked.data ? prb_python_start(&asked, &sink, &err) : NULL;
    if (job)
        prb_request_set_data(request, job, release_job);
    else
        call_failed(request, &err);
}

static void cancel_call(struct prb_request *request, enum prb_cancel why)
{
    (void)why;
    struct prb_python_job *job = prb_request_data(request);
    if (job)
        prb_python_cancel(job);
}

static const struct prb_request_kind call_kind = {
    .type = PRB_MSG_DEBUG_CALL,
    .name = "debug call",
    .runs_python = true,
    .begin = begin_call,
    .cancel = cancel_call,
};

/* ---- the part ---- */

static void closing(const struct prb_py_api *py)
{
    prb_debug_end();
    prb_debug_take_out(py);
}

const struct prb_probe_part prb_probe_part_debug = {
    .name = "debug",
    .requests = (const struct prb_request_kind *const[]){&debug_kind, &call_kind, NULL},
    .detach = prb_debug_take_out,
    .closing = closing,
    .forked = prb_debug_forked,
};
