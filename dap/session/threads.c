/* The threads of a session: all start when the client is known, and end when the session does. */
#include <time.h>

#include "base/clock.h"
#include "dap/session/queue.h"

void prb_dap_session_wait(struct prb_dap_session *session, pthread_cond_t *condition,
                          double seconds)
{
    if (seconds <= 0) {
        pthread_cond_wait(condition, &session->lock);
        return;
    }
    struct timespec until = prb_clock_in(seconds);
    pthread_cond_timedwait(condition, &session->lock, &until);
}

static void *work(struct prb_dap_session *session, unsigned worker)
{
    struct prb_dap_pending *pending;
    while ((pending = prb_dap_queue_next(session, worker))) {
        prb_dap_dispatch(session, pending);
        prb_dap_queue_done(session, pending);
        prb_dap_outbox_drain(session->outbox);
    }
    return NULL;
}

static void *work_first(void *session) { return work(session, 0); }
static void *work_second(void *session) { return work(session, 1); }

static void *(*const works[PRB_DAP_WORKERS])(void *) = {work_first, work_second};

bool prb_dap_session_start(struct prb_dap_session *session, struct prb_error *err)
{
    unsigned made = 0;
    if (!prb_dap_outbox_start(session->outbox, err))
        return false;
    int failed = 0;
    while (made < PRB_DAP_WORKERS && !failed)
        if (!(failed = pthread_create(&session->workers[made], NULL, works[made], session)))
            made++;
    if (!failed)
        failed = pthread_create(&session->progress, NULL, prb_dap_progress_run, session);
    session->started = !failed;
    if (!failed)
        return true;
    prb_dap_session_leave(session);
    while (made--)
        pthread_join(session->workers[made], NULL);
    return prb_fail_sys(err, failed, "starting a thread");
}

void prb_dap_session_join(struct prb_dap_session *session)
{
    for (unsigned worker = 0; session->started && worker < PRB_DAP_WORKERS; worker++)
        pthread_join(session->workers[worker], NULL);
    if (session->started)
        pthread_join(session->progress, NULL);
}
