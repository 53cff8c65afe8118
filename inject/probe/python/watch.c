/* The deadlines of a job and of each repr() in it: the watcher, and the interrupter of code that has
 * to end. */
#include "inject/probe/python/job.h"

#define END_MS 1500u     /* for interrupted code to end */
#define INTERRUPT_MS 50u /* before the next interruption; doubled up to */
#define INTERRUPT_MAX_MS 1000u
#define REPR_ROUND_MS 50u /* the watcher looks for a repr() that is overdue */
#define REPR_END_MS 500u  /* for an interrupted one to end */

/* ---- the interrupter ---- */

/* With the lock. */
static bool has_to_end(const struct prb_python_job *job) { return job->stop || job->repr.overdue; }

static void interrupt_once(struct prb_python_job *job, const struct prb_py_api *py, bool again)
{
    int state = py->PyGILState_Ensure();
    pthread_mutex_lock(&job->lock);
    bool running = job->phase == PRB_JOB_RUNNING;
    struct prb_py *(*interruption)(const struct prb_py_api *py) = job->request.work->interruption;
    if (job->interruptible && has_to_end(job)) {
        py->PyThreadState_SetAsyncExc(job->ident,
                                      interruption ? interruption(py) : *py->keyboard_interrupt);
        job->repr.sent |= job->repr.overdue;
    }
    pthread_mutex_unlock(&job->lock);
    if (again && running)
        prb_job_locate(job, py);
    py->PyGILState_Release(state);
}

static void *interrupt(void *argument)
{
    struct prb_python_job *job = argument;
    pthread_setname_np(pthread_self(), "probing stop");
    prb_py_inside(1); /* Python code of ours runs on it, which no debugger stops */
    const struct prb_py_api *py = prb_py_api(NULL);
    uint64_t pause = INTERRUPT_MS;
    bool over = !py;
    for (bool again = false; !over; again = true) {
        if (prb_py_finalizing(py))
            break;
        interrupt_once(job, py, again);
        uint64_t until = prb_clock_ns() + pause * PRB_JOB_MS;
        pthread_mutex_lock(&job->lock);
        while (job->phase != PRB_JOB_ENDED && has_to_end(job) && prb_job_wait(job, until))
            continue;
        over = job->phase == PRB_JOB_ENDED || !has_to_end(job);
        pthread_mutex_unlock(&job->lock);
        pause = pause * 2 < INTERRUPT_MAX_MS ? pause * 2 : INTERRUPT_MAX_MS;
    }
    prb_python_release(job);
    return NULL;
}

/* ---- its end ---- */

#define WITHDRAWALS_MAX 3 /* a handler of the program may raise first */
/* Turns of a loop: on each CPython looks whether something is pending. */
#define LOOP "for _ in '                                ': pass"

/* What is set becomes other, the old one goes. */
struct raised {
    struct prb_py *type, *value, *trace;
};

static void take_raised(const struct prb_py_api *py, struct raised *into)
{
    prb_py_drop(into->type);
    prb_py_drop(into->value);
    prb_py_drop(into->trace);
    py->PyErr_Fetch(&into->type, &into->value, &into->trace);
}

void prb_py_withdraw(const struct prb_py_api *py, unsigned long ident)
{
    struct raised before = {0};
    take_raised(py, &before);
    PRB_AUTO(prb_py)
    struct prb_py *code = py->Py_CompileString(LOOP, "<probing>", PRB_PY_FILE_INPUT);
    PRB_AUTO(prb_py) struct prb_py *space = code ? py->PyDict_New() : NULL;
    struct prb_py *ours = prb_py_interruption(py);
    py->PyThreadState_SetAsyncExc(ident, space ? ours : NULL);
    bool over = !space;
    for (int i = 0; i < WITHDRAWALS_MAX && !over; i++) {
        struct raised now = {0};
        PRB_AUTO(prb_py) struct prb_py *done = py->PyEval_EvalCode(code, space, space);
        take_raised(py, &now);
        over = now.type && py->PyErr_GivenExceptionMatches(now.type, ours);
        if (now.type && !over) {
            py->PyErr_Restore(now.type, now.value, now.trace);
            take_raised(py, &before);
        } else {
            prb_py_drop(now.type);
            prb_py_drop(now.value);
            prb_py_drop(now.trace);
        }
    }
    py->PyErr_Restore(before.type, before.value, before.trace);
}

/* ---- one repr() ---- */

static void begin_repr(struct prb_python_job *job, uint32_t limit_ms)
{
    pthread_mutex_lock(&job->lock);
    job->repr.until = prb_clock_ns() + (uint64_t)limit_ms * PRB_JOB_MS;
    if (!job->repr.watched)
        pthread_cond_broadcast(&job->changed);
    job->repr.watched = true;
    pthread_mutex_unlock(&job->lock);
}

/* Whether it was interrupted for being overdue, and for nothing else. */
static bool end_repr(struct prb_python_job *job, bool *sent_out)
{
    pthread_mutex_lock(&job->lock);
    bool overdue = job->repr.overdue && !job->stop;
    *sent_out = job->repr.sent;
    job->repr.until = 0;
    job->repr.overdue = job->repr.sent = false;
    pthread_mutex_unlock(&job->lock);
    return overdue;
}

struct prb_py *prb_job_repr(const struct prb_py_api *py, struct prb_py *value, uint32_t limit_ms)
{
    struct prb_python_job *job = limit_ms ? prb_job_here(py) : NULL;
    if (!job)
        return py->PyObject_Repr(value);
    begin_repr(job, limit_ms);
    struct prb_py *text = py->PyObject_Repr(value);
    bool sent, overdue = end_repr(job, &sent);
    struct prb_py *raised = text ? NULL : py->PyErr_Occurred();
    if (raised && overdue && py->PyErr_GivenExceptionMatches(raised, prb_py_interruption(py))) {
        py->PyErr_Clear();
        py->Py_IncRef(py->none);
        text = py->none;
    } else if (sent) {
        prb_py_withdraw(py, job->ident);
    }
    prb_python_release(job);
    return text;
}

/* ---- the watcher ---- */

/* Why code that does not end is left alone. */
static void fail_left(struct prb_python_job *job)
{
    if (job->stop == PRB_JOB_CLOSING)
        prb_fail(&job->left, PRB_GONE, "the interpreter is ending");
    else if (job->where[0])
        prb_fail(&job->left, PRB_TIMEOUT, "the code was interrupted but does not end: it is at %s",
                 job->where);
    else
        prb_fail(&job->left, PRB_TIMEOUT, "the code was interrupted but does not end");
    prb_error_remedy(&job->left,
                     "it is in a native call, or catches every exception; it is interrupted again "
                     "until it ends");
}

static void fail_gil(struct prb_python_job *job)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    if (!py || prb_py_finalizing(py) || job->stop == PRB_JOB_CLOSING)
        prb_fail(&job->left, PRB_GONE, "the interpreter is ending");
    else if (job->stop)
        prb_fail(&job->left, PRB_BUSY, "cancelled while another thread held the GIL");
    else
        prb_fail(&job->left, PRB_BUSY, "could not acquire the GIL within %u ms",
                 job->request.gil_ms);
}

/* The same, of one value alone. */
static void fail_repr(struct prb_python_job *job)
{
    prb_fail(&job->left, PRB_TIMEOUT, "the repr of a value was interrupted but does not end%s%s",
             job->where[0] ? ": it is at " : "", job->where);
    prb_error_remedy(&job->left, "the thread can show nothing until it ends");
}

/* Look at the repr() that runs, the lock held.  Returns when to look again. */
static uint64_t check_repr(struct prb_python_job *job, uint64_t now)
{
    uint64_t until = job->repr.until;
    if (until && now >= until && !job->repr.overdue) {
        job->repr.overdue = true;
        prb_job_spawn(job, interrupt, PRB_JOB_WORKER_STACK);
    }
    if (until && now >= until + REPR_END_MS * PRB_JOB_MS) {
        fail_repr(job);
        job->stop = PRB_JOB_OVERDUE; /* nothing that follows is for anybody */
        prb_job_leave_behind(job);
    }
    return now + REPR_ROUND_MS * PRB_JOB_MS;
}

/* Look at the clock, the lock held.  Returns when to look again (ns; 0: when something changes). */
static uint64_t check(struct prb_python_job *job, uint64_t gil_until, uint64_t *end_until)
{
    uint64_t now = prb_clock_ns();
    if (job->phase == PRB_JOB_WAITING) {
        if (job->stop || now >= gil_until) {
            fail_gil(job);
            prb_job_leave_behind(job);
        }
        return gil_until;
    }
    uint64_t limit =
        job->request.time_ms ? job->started + (uint64_t)job->request.time_ms * PRB_JOB_MS : 0;
    if (!job->stop && limit && now >= limit)
        job->stop = PRB_JOB_OVERDUE;
    if (!job->stop) {
        uint64_t again = job->repr.watched ? check_repr(job, now) : 0;
        return again && (!limit || again < limit) ? again : limit;
    }
    if (!*end_until) {
        *end_until = now + END_MS * PRB_JOB_MS;
        prb_job_spawn(job, interrupt, PRB_JOB_WORKER_STACK);
    }
    if (now >= *end_until) {
        fail_left(job);
        prb_job_leave_behind(job);
    }
    return *end_until;
}

void *prb_job_watch(void *argument)
{
    struct prb_python_job *job = argument;
    pthread_setname_np(pthread_self(), "probing watch");
    uint64_t gil_until = prb_clock_ns() + (uint64_t)job->request.gil_ms * PRB_JOB_MS, end_until = 0;
    pthread_mutex_lock(&job->lock);
    while (job->phase != PRB_JOB_ENDED && !job->abandoned) {
        if (job->output.len)
            prb_job_drain(job);
        if (job->phase == PRB_JOB_ENDED)
            break;
        uint64_t again = check(job, gil_until, &end_until);
        if (!job->abandoned && !job->output.len)
            prb_job_wait(job, again);
    }
    while (job->abandoned && job->output.len)
        prb_job_drain(job);
    bool mine = job->abandoned;
    pthread_mutex_unlock(&job->lock);
    if (mine)
        prb_job_answer(job);
    prb_python_release(job);
    return NULL;
}
