/* Requests that wait, cancelling them, and leaving: see queue.h. */
#include "dap/session/queue.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define OVERTAKE_S 0.3

void prb_dap_pending_free(struct prb_dap_pending *pending)
{
    json_decref(pending->message);
    json_decref(pending->events);
    free(pending);
}

/* Since when the first worker is in code of the target, s; 0: it is not. */
static double in_code_since(const struct prb_dap_session *session)
{
    const struct prb_dap_pending *first = session->running[0];
    return first && (first->when & PRB_DAP_RUNS_CODE) ? first->since : 0;
}

/* Take the first request that is a worker's, or has one of the flags, out of the queue. */
static struct prb_dap_pending *take(struct prb_dap_session *session, unsigned worker,
                                    unsigned flags)
{
    struct prb_dap_pending **at = &session->first, *before = NULL;
    while (*at && (*at)->worker != worker && !((*at)->when & flags)) {
        before = *at;
        at = &(*at)->next;
    }
    struct prb_dap_pending *found = *at;
    if (!found)
        return NULL;
    *at = found->next;
    if (session->last == found)
        session->last = before;
    session->pending--;
    session->cost -= found->cost;
    return found;
}

struct prb_dap_pending *prb_dap_queue_next(struct prb_dap_session *session, unsigned worker)
{
    struct prb_dap_pending *found = NULL;
    pthread_mutex_lock(&session->lock);
    while (!session->leaving) {
        double since = worker ? in_code_since(session) : 0;
        double left = since > 0 ? since + OVERTAKE_S - prb_clock_s() : 0;
        bool overtakes = since > 0 && left <= 0;
        if ((found = take(session, worker, overtakes ? PRB_DAP_LOOKS : 0)))
            break;
        prb_dap_session_wait(session, &session->work[worker], left);
    }
    if (found) {
        found->worker = worker;
        session->running[worker] = found;
        found->since = prb_clock_s();
        if (session->progress_idle && session->client.progress)
            pthread_cond_signal(&session->progress_wake);
        if (!worker && (found->when & PRB_DAP_RUNS_CODE))
            pthread_cond_signal(&session->work[1]);
    }
    pthread_mutex_unlock(&session->lock);
    return found;
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
    const struct prb_dap_request *request = prb_dap_request_find(session, command);
    bool urgent = strcmp(command, "pause") == 0;
    pending->when = request ? request->when : 0;
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
    if (pending->when & PRB_DAP_LOOKS)
        pthread_cond_signal(&session->work[1]);
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
