/* The deadlines of a job: its watcher, and the interrupter of code that has to end. */
#include "inject/probe/python/job.h"

#define END_MS 1500u     /* for interrupted code to end */
#define INTERRUPT_MS 50u /* before the next interruption; doubled up to */
#define INTERRUPT_MAX_MS 1000u

/* ---- the interrupter ---- */

static void interrupt_once(struct prb_python_job *job, const struct prb_py_api *py, bool again)
{
    int state = py->PyGILState_Ensure();
    pthread_mutex_lock(&job->lock);
    bool running = job->phase == PRB_JOB_RUNNING;
    struct prb_py *(*interruption)(const struct prb_py_api *py) = job->request.work->interruption;
    if (job->interruptible)
        py->PyThreadState_SetAsyncExc(job->ident,
                                      interruption ? interruption(py) : *py->keyboard_interrupt);
    pthread_mutex_unlock(&job->lock);
    if (again && running)
        prb_job_locate(job, py);
    py->PyGILState_Release(state);
}

static void *interrupt(void *argument)
{
    struct prb_python_job *job = argument;
    pthread_setname_np(pthread_self(), "probing stop");
    const struct prb_py_api *py = prb_py_api(NULL);
    uint64_t pause = INTERRUPT_MS;
    bool over = !py;
    for (bool again = false; !over; again = true) {
        if (prb_py_finalizing(py))
            break;
        interrupt_once(job, py, again);
        uint64_t until = prb_clock_ns() + pause * PRB_JOB_MS;
        pthread_mutex_lock(&job->lock);
        while (job->phase != PRB_JOB_ENDED && prb_job_wait(job, until))
            continue;
        over = job->phase == PRB_JOB_ENDED;
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
    if (!job->stop)
        return limit;
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
