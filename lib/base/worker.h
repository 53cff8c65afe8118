/*
 * A thread that does something again and again: at its beginning, every so many seconds, and when
 * it is woken.
 */
#ifndef PRB_BASE_WORKER_H
#define PRB_BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

/* {0} before it begins. */
struct prb_worker {
    void (*turn)(void *context);
    void *context;
    double every; /* s, from the beginning of a turn to that of the next */
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool woken, ends; /* guarded by lock */
};

/* False: err, and it does not run. */
bool prb_worker_begin(struct prb_worker *worker, double every, void (*turn)(void *context),
                      void *context, struct prb_error *err) PRB_MUST_CHECK;
/* The next turn begins at once, or behind the present one. */
void prb_worker_wake(struct prb_worker *worker);
/* False once it is to end: for a turn that takes long. */
bool prb_worker_goes_on(struct prb_worker *worker);
/* Waits for the turn that it does.  Of one that does not run: nothing. */
void prb_worker_end(struct prb_worker *worker);

#endif
