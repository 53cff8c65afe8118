/* Requests that wait, cancelling them, and leaving: see queue.h. */
#include "dap/session/queue.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"

void prb_dap_pending_free(struct prb_dap_pending *pending)
{
    json_decref(pending->message);
    json_decref(pending->events);
    free(pending);
}

struct prb_dap_pending *prb_dap_queue_next(struct prb_dap_session *session, unsigned worker)
{
    pthread_mutex_lock(&session->lock);
    for (;;) {
        struct prb_dap_pending **at = &session->first, *before = NULL;
        while (*at && (*at)->worker != worker) {
            before = *at;
            at = &(*at)->next;
        }
        struct prb_dap_pending *found = session->leaving ? NULL : *at;
        if (found) {
            *at = found->next;
            if (session->last == found)
                session->last = before;
            session->pending--;
            session->cost -= found->cost;
            session->running[worker] = found;
            found->since = prb_clock_s();
            if (session->progress_idle && session->client.progress)
                pthread_cond_signal(&session->progress_wake);
        }
        if (found || session->leaving) {
            pthread_mutex_unlock(&session->lock);
            return found;
        }
        pthread_cond_wait(&session->work[worker], &session->lock);
    }
}

void prb_dap_queue_done(struct prb_dap_session *session, struct prb_dap_pending *pending)
{
    pthread_mutex_lock(&session->lock);
    session->running[pending->worker] = NULL;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
    prb_dap_pending_free(pending);
}

/* ---- what waits ---- */

bool prb_dap_queue_is_crowded(struct prb_dap_session *session, size_t cost)
{
    pthread_mutex_lock(&session->lock);
    bool crowded = session->pending >= PRB_DAP_PENDING_MAX ||
                   (session->pending && session->cost + cost > PRB_DAP_PENDING_COST);
    pthread_mutex_unlock(&session->lock);
    return crowded;
}

bool prb_dap_queue_is_busy(const struct prb_dap_session *session)
{
    bool has = session->first != NULL;
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        has |= session->running[worker] != NULL;
    return has;
}

void prb_dap_queue_add(struct prb_dap_session *session, struct prb_dap_pending *pending)
{
    const char *command = json_string_value(json_object_get(pending->message, "command"));
    bool urgent = strcmp(command, "pause") == 0;
    if (strcmp(command, "disconnect") == 0 || strcmp(command, "terminate") == 0)
        prb_dap_queue_cancel_all(session);
    pthread_mutex_lock(&session->lock);
    pending->worker = urgent && session->running[0] && session->state >= PRB_DAP_IS_ATTACHED;
    if (session->last)
        session->last->next = pending;
    else
        session->first = pending;
    session->last = pending;
    session->pending++;
    session->cost += pending->cost;
    pthread_cond_signal(&session->work[pending->worker]);
    pthread_mutex_unlock(&session->lock);
}

/* ---- cancelling ---- */

bool prb_dap_is_cancelled(void *context)
{
    struct prb_dap_session *session = context;
    pthread_mutex_lock(&session->lock);
    bool cancelled = session->leaving || session->state == PRB_DAP_ENDED;
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        if (session->running[worker] && pthread_equal(session->workers[worker], pthread_self()))
            cancelled |= session->running[worker]->cancelled;
    pthread_mutex_unlock(&session->lock);
    return cancelled;
}

void prb_dap_queue_cancel_all(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    for (struct prb_dap_pending *at = session->first; at; at = at->next)
        at->cancelled = true;
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        if (session->running[worker])
            session->running[worker]->cancelled = true;
    pthread_mutex_unlock(&session->lock);
}

void prb_dap_queue_cancel(struct prb_dap_session *session, json_int_t seq)
{
    pthread_mutex_lock(&session->lock);
    for (struct prb_dap_pending *at = session->first; at; at = at->next)
        at->cancelled |= at->seq == seq;
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        if (session->running[worker] && session->running[worker]->seq == seq)
            session->running[worker]->cancelled = true;
    pthread_mutex_unlock(&session->lock);
}

/* ---- leaving ---- */

static void wake_reader(struct prb_dap_session *session)
{
    uint64_t one = 1;
    ssize_t written = write(session->wake, &one, sizeof one);
    (void)written; /* full: the reader is awake already */
}

void prb_dap_session_leave(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->leaving = true;
    pthread_cond_broadcast(&session->changed);
    pthread_cond_broadcast(&session->progress_wake);
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        pthread_cond_broadcast(&session->work[worker]);
    pthread_mutex_unlock(&session->lock);
    wake_reader(session);
}
