/* Taking everything out of the interpreter: one more job, which somebody waits for. */
#include <stdlib.h>

#include "inject/probe/python/job.h"

struct detaching {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned references;
    bool over, failed;
    struct prb_error failure;
};

static void detaching_release(struct detaching *detaching)
{
    if (__atomic_sub_fetch(&detaching->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(detaching);
}

static void detach_over(struct detaching *detaching, const struct prb_error *failure)
{
    pthread_mutex_lock(&detaching->lock);
    detaching->over = true;
    detaching->failed = failure;
    if (failure)
        detaching->failure = *failure;
    pthread_cond_broadcast(&detaching->changed);
    pthread_mutex_unlock(&detaching->lock);
    detaching_release(detaching);
}

static bool detach_output(void *context, int stream, const char *text, size_t len)
{
    (void)context, (void)stream, (void)text, (void)len;
    return true;
}
static void detach_done(void *context, const struct prb_python_result *result)
{
    (void)result;
    detach_over(context, NULL);
}
static void detach_failed(void *context, const struct prb_error *err) { detach_over(context, err); }

static bool detach_agent(uint32_t wait_ms, struct prb_error *err)
{
    struct detaching *detaching = calloc(1, sizeof *detaching);
    if (!detaching)
        return prb_fail(err, PRB_NOMEM, "no memory to detach");
    pthread_mutex_init(&detaching->lock, NULL);
    pthread_cond_init(&detaching->changed, NULL);
    detaching->references = 2;
    struct prb_python_request request = {
        .kind = (enum prb_python_kind)PRB_PYTHON_DETACH, .gil_ms = wait_ms, .time_ms = wait_ms};
    struct prb_python_sink sink = {detach_output, detach_done, detach_failed, detaching};
    struct prb_python_job *job = prb_python_start(&request, &sink, err);
    if (!job) {
        free(detaching);
        return false;
    }
    pthread_mutex_lock(&detaching->lock);
    while (!detaching->over) /* its deadlines are ours */
        pthread_cond_wait(&detaching->changed, &detaching->lock);
    bool ok = !detaching->failed;
    if (!ok && err)
        *err = detaching->failure;
    pthread_mutex_unlock(&detaching->lock);
    detaching_release(detaching);
    prb_python_release(job);
    return ok;
}

bool prb_python_detach(uint32_t wait_ms, struct prb_error *err)
{
    prb_job_stop_all(PRB_JOB_CANCELLED, wait_ms);
    struct prb_error none = {0};
    if (!prb_py_api(&none) && (none.code == PRB_NOT_PYTHON || none.code == PRB_GONE))
        return true; /* nothing of ours can be there */
    return detach_agent(wait_ms, err);
}
