/* Starting a job and waiting for its answer: taking all out of the interpreter is one. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "inject/probe/python/job.h"

/* More for a job that has begun: other threads may have the GIL in between. */
#define RUNNING_MS 3000u

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned references; /* of who waits, and of the job's sink */
    bool over, failed;
    struct prb_error failure;
};

static void release(struct waiting *waiting)
{
    if (__atomic_sub_fetch(&waiting->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(waiting);
}

static void answered(struct waiting *waiting, const struct prb_error *failure)
{
    pthread_mutex_lock(&waiting->lock);
    waiting->over = true;
    waiting->failed = failure;
    if (failure)
        waiting->failure = *failure;
    pthread_cond_broadcast(&waiting->changed);
    pthread_mutex_unlock(&waiting->lock);
    release(waiting);
}

static bool on_output(void *context, int stream, const char *text, size_t len)
{
    (void)context, (void)stream, (void)text, (void)len;
    return true;
}
static void on_done(void *context, const struct prb_python_result *result)
{
    (void)result;
    answered(context, NULL);
}
static void on_failed(void *context, const struct prb_error *err) { answered(context, err); }

static bool is_running(struct prb_python_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool is = job->phase == PRB_JOB_RUNNING;
    pthread_mutex_unlock(&job->lock);
    return is;
}

/* Until the answer, or so long; the lock is held. */
static void await_answer(struct waiting *waiting, uint32_t wait_ms)
{
    struct timespec until = prb_clock_in(wait_ms * 1e-3);
    int late = 0;
    while (!waiting->over && !late)
        late = wait_ms == PRB_PYTHON_ITS_OWN
                   ? pthread_cond_wait(&waiting->changed, &waiting->lock)
                   : pthread_cond_timedwait(&waiting->changed, &waiting->lock, &until);
}

/* Whether the job ended well in time. */
static bool await(struct waiting *waiting, struct prb_python_job *job, uint32_t wait_ms,
                  struct prb_error *err)
{
    pthread_mutex_lock(&waiting->lock);
    await_answer(waiting, wait_ms);
    if (!waiting->over) {
        pthread_mutex_unlock(&waiting->lock);
        bool more = is_running(job);
        pthread_mutex_lock(&waiting->lock);
        if (more)
            await_answer(waiting, RUNNING_MS);
    }
    bool ok = waiting->over && !waiting->failed;
    if (waiting->failed && err)
        *err = waiting->failure;
    else if (!waiting->over)
        prb_fail(err, PRB_TIMEOUT, "the job did not end in time");
    pthread_mutex_unlock(&waiting->lock);
    return ok;
}

bool prb_python_wait(const struct prb_python_request *request, uint32_t wait_ms,
                     struct prb_error *err)
{
    struct waiting *waiting = calloc(1, sizeof *waiting);
    if (!waiting)
        return prb_fail(err, PRB_NOMEM, "no memory to wait for a job");
    pthread_mutex_init(&waiting->lock, NULL);
    prb_clock_cond_init(&waiting->changed);
    waiting->references = 2;
    const struct prb_python_sink sink = {on_output, on_done, on_failed, waiting};
    struct prb_python_job *job = prb_python_start(request, &sink, err);
    if (!job) {
        free(waiting);
        return false;
    }
    bool ok = await(waiting, job, wait_ms, err);
    release(waiting);
    prb_python_release(job);
    return ok;
}

bool prb_python_detach(uint32_t wait_ms, struct prb_error *err)
{
    prb_job_stop_all(PRB_JOB_CANCELLED, wait_ms);
    struct prb_error none = {0};
    if (!prb_py_api(&none) && (none.code == PRB_NOT_PYTHON || none.code == PRB_GONE))
        return true; /* nothing of ours can be there */
    const struct prb_python_request request = {
        .work = &prb_python_detach_work, .gil_ms = wait_ms, .time_ms = wait_ms};
    return prb_python_wait(&request, PRB_PYTHON_ITS_OWN, err);
}
