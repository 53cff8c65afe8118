/* A thread for work that may hang (stopper.h). */
#include "native/stopper.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

struct prb_stopper {
    pthread_t thread;
    pid_t process; /* a child after fork(2) has no such thread */
    bool made;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    void (*work)(void *context); /* NULL: none is wanted */
    void *context;
    bool done, leave;
};

/* So that nobody takes the CPU from us while the target is stopped.  Where it is not allowed, we do
 * without. */
static void hurry(void)
{
    struct sched_param first = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

static void *serve(void *argument)
{
    struct prb_stopper *stopper = argument;
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    hurry();
    pthread_mutex_lock(&stopper->lock);
    while (!stopper->leave) {
        if (!stopper->work || stopper->done) {
            pthread_cond_wait(&stopper->changed, &stopper->lock);
            continue;
        }
        pthread_mutex_unlock(&stopper->lock);
        stopper->work(stopper->context);
        pthread_mutex_lock(&stopper->lock);
        stopper->done = true;
        pthread_cond_signal(&stopper->changed);
    }
    pthread_mutex_unlock(&stopper->lock);
    return NULL;
}

static struct prb_stopper *stopper_new(void)
{
    struct prb_stopper *stopper = calloc(1, sizeof *stopper);
    if (!stopper)
        return NULL;
    pthread_mutex_init(&stopper->lock, NULL);
    prb_clock_cond_init(&stopper->changed);
    return stopper;
}

/* The caller's signal handlers have no business in our thread. */
static bool make_thread(struct prb_stopper *stopper, struct prb_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&stopper->thread, NULL, serve, stopper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    stopper->process = getpid();
    stopper->made = !failed;
    return !failed || prb_fail_sys(err, failed, "cannot start a thread");
}

/* False: not in time. */
static bool await(struct prb_stopper *stopper, int64_t wait_ns)
{
    struct timespec until = prb_clock_timespec_ns(prb_clock_ns() + (uint64_t)wait_ns);
    int late = 0;
    while (!stopper->done && !late)
        late = pthread_cond_timedwait(&stopper->changed, &stopper->lock, &until);
    return stopper->done;
}

/* False: it was cancelled, and is gone. */
static bool cancel(struct prb_stopper *stopper)
{
    void *result;
    pthread_mutex_lock(&stopper->lock);
    stopper->leave = true;
    pthread_mutex_unlock(&stopper->lock);
    pthread_cancel(stopper->thread);
    pthread_join(stopper->thread, &result);
    stopper->made = stopper->leave = false;
    stopper->work = NULL;
    return result != PTHREAD_CANCELED;
}

static bool run(struct prb_stopper *stopper, void (*work)(void *context), void *context,
                int64_t wait_ns, struct prb_error *err)
{
    pthread_mutex_lock(&stopper->lock);
    stopper->work = work;
    stopper->context = context;
    stopper->done = false;
    pthread_cond_signal(&stopper->changed);
    bool in_time = await(stopper, wait_ns);
    pthread_mutex_unlock(&stopper->lock);
    return in_time || cancel(stopper) || prb_fail(err, PRB_TIMEOUT, "it takes too long");
}

bool prb_stopper_run(struct prb_stopper **place, void (*work)(void *context), void *context,
                     int64_t wait_ns, struct prb_error *err)
{
    struct prb_stopper *stopper = *place ? *place : (*place = stopper_new());
    if (!stopper)
        return prb_nomem(err);
    if (stopper->made && stopper->process != getpid()) {
        *place = NULL; /* the parent's: its lock may be held by a thread that does not exist here */
        return prb_stopper_run(place, work, context, wait_ns, err);
    }
    if (!stopper->made && !make_thread(stopper, err))
        return false;
    /* A suspended tool (Ctrl-Z) would keep what the work has stopped. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = run(stopper, work, context, wait_ns, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

void prb_stopper_free(struct prb_stopper *stopper)
{
    if (!stopper)
        return;
    if (stopper->made && stopper->process == getpid()) {
        pthread_mutex_lock(&stopper->lock);
        stopper->leave = true;
        pthread_cond_broadcast(&stopper->changed);
        pthread_mutex_unlock(&stopper->lock);
        pthread_join(stopper->thread, NULL);
    }
    pthread_cond_destroy(&stopper->changed);
    pthread_mutex_destroy(&stopper->lock);
    free(stopper);
}
