/* See worker.h. */
#include "base/worker.h"

#include "base/clock.h"

/* False: it is to end. */
static bool wait_until(struct prb_worker *worker, double next)
{
    struct timespec until = prb_clock_timespec(next);
    pthread_mutex_lock(&worker->lock);
    while (!worker->ends && !worker->woken && prb_clock_s() < next)
        pthread_cond_timedwait(&worker->wake, &worker->lock, &until);
    bool ends = worker->ends;
    worker->woken = false;
    pthread_mutex_unlock(&worker->lock);
    return !ends;
}

static void *run(void *argument)
{
    struct prb_worker *worker = argument;
    for (double next = prb_clock_s(); wait_until(worker, next);) {
        next = prb_clock_s() + worker->every;
        worker->turn(worker->context);
    }
    return NULL;
}

bool prb_worker_begin(struct prb_worker *worker, double every, void (*turn)(void *context),
                      void *context, struct prb_error *err)
{
    *worker = (struct prb_worker){.turn = turn, .context = context, .every = every};
    pthread_mutex_init(&worker->lock, NULL);
    prb_clock_cond_init(&worker->wake);
    worker->runs = pthread_create(&worker->thread, NULL, run, worker) == 0;
    if (worker->runs)
        return true;
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->lock);
    return prb_fail(err, PRB_NOMEM, "no thread can be made");
}

void prb_worker_wake(struct prb_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->woken = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
}

bool prb_worker_goes_on(struct prb_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool ends = worker->ends;
    pthread_mutex_unlock(&worker->lock);
    return !ends;
}

void prb_worker_end(struct prb_worker *worker)
{
    if (!worker->runs)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->ends = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->lock);
    worker->runs = false;
}
