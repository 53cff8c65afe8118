/*
 * Jobs and their threads.  The worker takes the GIL, runs the code and answers; the watcher hands
 * output on and has the deadlines: when they are over it answers instead, and the worker is for
 * nobody any more.  An interrupter comes when the code has to end.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "inject/probe/python/bytecode.h"
#include "inject/probe/python/job.h"
#include "inject/probe/python/switch_interval.h"

#define GIL_MS 1000
#define CLOSE_MS 100u /* that the interpreter's end waits for running code */
#define WATCHER_STACK (256u << 10)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t fewer;
    struct prb_python_job *first;
    unsigned workers; /* threads that have not ended, those left behind included */
    unsigned unanswered;
    bool closing;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER};
PRB_CLOCK_COND(jobs.fewer)

bool prb_job_wait(struct prb_python_job *job, uint64_t until)
{
    if (!until)
        return pthread_cond_wait(&job->changed, &job->lock) == 0;
    struct timespec time = prb_clock_timespec_ns(until);
    return pthread_cond_timedwait(&job->changed, &job->lock, &time) != ETIMEDOUT;
}

void prb_job_hold(struct prb_python_job *job)
{
    __atomic_add_fetch(&job->references, 1, __ATOMIC_RELAXED);
}

static void release_data(const struct prb_python_request *request)
{
    if (request->work->release)
        request->work->release(request->data);
}

void prb_python_release(struct prb_python_job *job)
{
    if (!job || __atomic_sub_fetch(&job->references, 1, __ATOMIC_ACQ_REL))
        return;
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    prb_buf_deinit(&job->output);
    release_data(&job->request);
    free(job->text);
    free(job);
}

bool prb_job_spawn(struct prb_python_job *job, void *(*body)(void *), size_t stack)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    prb_job_hold(job);
    pthread_t thread;
    bool made = pthread_create(&thread, &attributes, body, job) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!made)
        prb_python_release(job);
    return made;
}

/* ---- the answer ---- */

static void leave_list(struct prb_python_job *job)
{
    pthread_mutex_lock(&jobs.lock);
    for (struct prb_python_job **link = &jobs.first; *link; link = &(*link)->next)
        if (*link == job) {
            *link = job->next;
            break;
        }
    jobs.unanswered--;
    pthread_cond_broadcast(&jobs.fewer);
    pthread_mutex_unlock(&jobs.lock);
}

void prb_job_answer(struct prb_python_job *job)
{
    leave_list(job);
    const struct prb_python_sink *sink = &job->sink;
    char note[96];
    if (job->output_dropped) {
        int len = snprintf(note, sizeof note, "\n[%llu more bytes of output were left out]\n",
                           (unsigned long long)job->output_dropped);
        sink->output(sink->context, 2, note, (size_t)len);
    }
    if (!job->abandoned && !job->failed && job->stop == PRB_JOB_OVERDUE && job->interrupted) {
        sink->output(sink->context, 2, job->text, job->result.len);
        job->failed = !prb_fail(&job->failure, PRB_TIMEOUT, "the code was interrupted after %u ms",
                                job->request.time_ms);
    }
    if (job->abandoned)
        sink->failed(sink->context, &job->left);
    else if (job->failed)
        sink->failed(sink->context, &job->failure);
    else
        sink->done(sink->context, &job->result);
}

struct prb_python_job *prb_job_here(const struct prb_py_api *py)
{
    unsigned long ident = py->PyThread_get_thread_ident();
    pthread_mutex_lock(&jobs.lock);
    struct prb_python_job *job = jobs.first;
    for (bool here = false; job && !here; job = here ? job : job->next) {
        pthread_mutex_lock(&job->lock);
        here = job->interruptible && job->ident == ident;
        pthread_mutex_unlock(&job->lock);
    }
    if (job)
        prb_job_hold(job);
    pthread_mutex_unlock(&jobs.lock);
    return job;
}

/* ---- the worker ---- */

static void worker_gone(void)
{
    pthread_mutex_lock(&jobs.lock);
    jobs.workers--;
    pthread_cond_broadcast(&jobs.fewer);
    pthread_mutex_unlock(&jobs.lock);
}

/* The GIL is free again: answer, unless the watcher has. */
static void ended(struct prb_python_job *job)
{
    pthread_mutex_lock(&job->lock);
    job->phase = PRB_JOB_ENDED;
    bool wanted = !job->abandoned;
    while (wanted && (job->output.len || job->draining))
        prb_job_drain(job);
    pthread_mutex_unlock(&job->lock);
    if (wanted)
        prb_job_answer(job);
    pthread_mutex_lock(&job->lock);
    pthread_cond_broadcast(
        &job->changed); /* only now: the answer does not wait for the watcher's going */
    pthread_mutex_unlock(&job->lock);
    worker_gone();
    prb_python_release(job);
}

/* The GIL is here: false when nobody waits for the answer any more. */
static bool begin(struct prb_python_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool wanted = !job->abandoned || job->request.work->always;
    if (wanted) {
        job->phase = PRB_JOB_RUNNING;
        job->started = prb_clock_ns();
        if (job->request.time_ms || job->stop) /* else the watcher sees it in time */
            pthread_cond_broadcast(&job->changed);
    }
    pthread_mutex_unlock(&job->lock);
    return wanted;
}

/* With the lock: whether the others let it have the GIL soon. */
static void shorten(struct prb_python_job *job, bool on)
{
    if (job->urgent != on)
        prb_switch_interval_shorten(on);
    job->urgent = on;
}

static void set_urgent(struct prb_python_job *job, bool on)
{
    pthread_mutex_lock(&job->lock);
    shorten(job, on && !job->abandoned);
    pthread_mutex_unlock(&job->lock);
}

void prb_job_leave_behind(struct prb_python_job *job)
{
    shorten(job, false);
    job->abandoned = true;
    pthread_cond_broadcast(&job->changed);
}

bool prb_job_is_left_behind(struct prb_python_job *job)
{
    if (!job)
        return false;
    pthread_mutex_lock(&job->lock);
    bool is = job->abandoned && job->phase != PRB_JOB_ENDED;
    pthread_mutex_unlock(&job->lock);
    return is;
}

void prb_job_work(struct prb_python_job *job)
{
    const struct prb_py_api *py = prb_py_api(&job->failure);
    job->failed = !py;
    if (py && !prb_py_finalizing(py) && !prb_py_make_gil(py, &job->failure)) {
        job->failed = true;
    } else if (py && !prb_py_finalizing(py)) {
        set_urgent(job, job->request.work->urgent);
        int state = py->PyGILState_Ensure();
        set_urgent(job, false);
        prb_py_gil_acquired(py);
        if (begin(job)) {
            job->failed = !job->request.work->run(job, py, &job->failure);
            job->result.microseconds = (prb_clock_ns() - job->started) / 1000;
        }
        prb_py_gil_releasing(py);
        py->PyGILState_Release(state);
    } else if (py) {
        job->failed = !prb_fail(&job->failure, PRB_GONE, "the interpreter is ending");
    }
    if (getpid() == job->process)
        ended(job);
}

static void *work(void *argument)
{
    pthread_setname_np(pthread_self(), "probing eval");
    prb_py_inside(1);
    prb_job_work(argument);
    return NULL;
}

/* ---- from outside ---- */

static bool no_output(void *context, int stream, const char *text, size_t len)
{
    (void)context, (void)stream, (void)text, (void)len;
    return true;
}
static void no_result(void *context, const struct prb_python_result *result)
{
    (void)context, (void)result;
}
static void no_failure(void *context, const struct prb_error *err) { (void)context, (void)err; }

static struct prb_python_job *job_new(const struct prb_python_request *request,
                                      const struct prb_python_sink *sink)
{
    struct prb_python_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->references = 1;
    job->process = getpid();
    job->request = *request;
    job->sink = sink ? *sink : (struct prb_python_sink){no_output, no_result, no_failure, NULL};
    if (!job->request.gil_ms)
        job->request.gil_ms = GIL_MS;
    pthread_mutex_init(&job->lock, NULL);
    prb_clock_cond_init(&job->changed);
    return job;
}

static bool enter_list(struct prb_python_job *job, struct prb_error *err)
{
    pthread_mutex_lock(&jobs.lock);
    bool full = jobs.workers >= PRB_PYTHON_JOBS_MAX && !job->request.work->always;
    bool closing = jobs.closing;
    if (!full && !closing) {
        job->next = jobs.first;
        jobs.first = job;
        jobs.workers++, jobs.unanswered++;
    }
    pthread_mutex_unlock(&jobs.lock);
    if (closing)
        return prb_fail(err, PRB_GONE, "the interpreter is ending");
    if (full) {
        prb_fail(err, PRB_BUSY, "%d evaluations run or wait for the GIL already",
                 PRB_PYTHON_JOBS_MAX);
        return prb_error_remedy(err, "wait for one of them, or interrupt it");
    }
    return true;
}

/* There is no thread for the deadlines: a job that has not begun is given up. */
static void unwatched(struct prb_python_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool mine = job->phase == PRB_JOB_WAITING;
    if (mine) {
        prb_nomem(&job->left);
        prb_job_leave_behind(job);
    }
    pthread_mutex_unlock(&job->lock);
    if (mine)
        prb_job_answer(job);
}

static bool is_handed(struct prb_python_job *job)
{
    return job->request.work->hand && job->request.work->hand(job);
}

struct prb_python_job *prb_python_start(const struct prb_python_request *request,
                                        const struct prb_python_sink *sink, struct prb_error *err)
{
    const struct prb_py_api *py = prb_py_api(err);
    bool can =
        py && (!prb_py_finalizing(py) || prb_fail(err, PRB_GONE, "the interpreter is ending"));
    struct prb_python_job *job = can ? job_new(request, sink) : NULL;
    if (can && !job)
        prb_fail(err, PRB_NOMEM, "no memory for the request");
    if (!job) {
        release_data(request);
        return NULL;
    }
    bool entered = enter_list(job, err);
    if (entered && (is_handed(job) || prb_job_spawn(job, work, PRB_JOB_WORKER_STACK))) {
        if (!prb_job_spawn(job, prb_job_watch, WATCHER_STACK))
            unwatched(job);
        return job;
    }
    if (entered) {
        prb_nomem(err);
        leave_list(job);
        worker_gone();
    }
    prb_python_release(job);
    return NULL;
}

static void stop(struct prb_python_job *job, enum prb_job_stop why)
{
    pthread_mutex_lock(&job->lock);
    if (!job->stop || why == PRB_JOB_CLOSING)
        job->stop = why;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

void prb_python_cancel(struct prb_python_job *job) { stop(job, PRB_JOB_CANCELLED); }

unsigned prb_python_running(void)
{
    pthread_mutex_lock(&jobs.lock);
    unsigned count = jobs.unanswered;
    pthread_mutex_unlock(&jobs.lock);
    return count;
}

void prb_job_stop_all(enum prb_job_stop why, uint64_t wait_ms)
{
    struct timespec until = prb_clock_in((double)wait_ms * 1e-3);
    pthread_mutex_lock(&jobs.lock);
    bool before = jobs.closing;
    jobs.closing = true;
    for (struct prb_python_job *job = jobs.first; job; job = job->next)
        stop(job, why);
    int late = 0;
    while (jobs.workers && !late)
        late = pthread_cond_timedwait(&jobs.fewer, &jobs.lock, &until);
    jobs.closing = before || why == PRB_JOB_CLOSING;
    pthread_mutex_unlock(&jobs.lock);
}

void prb_job_closing(void) { prb_job_stop_all(PRB_JOB_CLOSING, CLOSE_MS); }

void prb_python_forked(void)
{
    pthread_mutex_init(&jobs.lock, NULL);
    prb_clock_cond_init(&jobs.fewer);
    jobs.first = NULL;
    jobs.workers = jobs.unanswered = 0;
    jobs.closing = false;
    prb_py_forked();
    prb_job_call_forked();
    prb_switch_interval_forked();
    prb_bytecode_forked();
}
