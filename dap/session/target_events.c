/* What the target does, as the back end reports it: it stops, runs, prints, ends. */
#include <string.h>

#include "base/clock.h"
#include "dap/attach/exit_status.h"
#include "dap/client/sources.h"
#include "dap/session/countdown.h"
#include "dap/session/watch.h"

#define END_S 1.0      /* from the probe's end to the process's */
#define REPLACED_S 2.0 /* the same to another Python program in the process */
#define ROUND_MS 100

static void take_stop(struct prb_dap_session *session, json_t *body)
{
    pthread_mutex_lock(&session->lock);
    json_decref(session->stopped);
    session->stopped = json_incref(body);
    session->alone_since = 0;
    session->stop_unsent = session->state < PRB_DAP_CONFIGURED;
    if (!session->stop_unsent)
        prb_dap_send_locked(session, "stopped", json_incref(body));
    prb_dap_watch_now(session->watch, json_integer_value(json_object_get(body, "threadId")));
    struct prb_dap_countdown *countdown = session->countdown;
    pthread_mutex_unlock(&session->lock);
    prb_dap_countdown_begin(countdown);
}

void prb_dap_target_resumed(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    json_decref(session->stopped);
    session->stopped = NULL;
    session->alone_since = 0;
    session->stop_unsent = false;
    prb_dap_thread_map_clear(&session->threads);
    struct prb_dap_countdown *countdown = session->countdown;
    pthread_mutex_unlock(&session->lock);
    prb_dap_countdown_end(countdown);
}

bool prb_dap_end_claim(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool mine = !session->end_claimed;
    session->end_claimed = true;
    pthread_mutex_unlock(&session->lock);
    return mine;
}

void prb_dap_end_unclaim(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->end_claimed = false;
    pthread_mutex_unlock(&session->lock);
}

void prb_dap_target_ended(struct prb_dap_session *session)
{
    if (!prb_dap_end_claim(session))
        return;
    prb_dap_exit_send(session);
    prb_dap_send(session, "terminated", NULL);
}

/* The probe has gone.  Whether the process runs another Python by now, as after os.execv(), which is
 * announced as a child. */
static bool is_replaced(struct prb_dap_session *session, bool *ended_out)
{
    double until = prb_clock_s() + (session->takes_children ? REPLACED_S : END_S);
    for (;;) {
        pthread_mutex_lock(&session->lock);
        bool replaced = session->replaced;
        bool leaves = session->leaving || session->state == PRB_DAP_ENDED;
        pthread_mutex_unlock(&session->lock);
        *ended_out = !replaced && prb_dap_has_ended(session, ROUND_MS);
        if (replaced || *ended_out || leaves)
            return replaced;
        if (prb_clock_s() >= until)
            return session->takes_children && prb_dap_children_find_replaced(session);
    }
}

static void take_end(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool first = !session->gone && !session->leaving && session->state != PRB_DAP_ENDED;
    session->gone |= first;
    prb_dap_watch_gone(session->watch);
    pthread_mutex_unlock(&session->lock);
    prb_dap_target_resumed(session);
    if (!first)
        return;
    bool ended;
    if (is_replaced(session, &ended)) { /* births.c sees its end */
        prb_dap_say(session, false,
                    "probing: process %d has started another Python program; it has a session of "
                    "its own",
                    (int)session->pid);
        return;
    }
    if (!ended)
        prb_dap_say(session, true, "probing: the probe has left process %d, which runs on",
                    (int)session->pid);
    prb_dap_target_ended(session);
}

void prb_dap_target_event(void *context, const char *event, json_t *body)
{
    struct prb_dap_session *session = context;
    if (strcmp(event, "stopped") == 0) {
        take_stop(session, body);
        return;
    }
    if (strcmp(event, "gone") == 0) {
        take_end(session);
        return;
    }
    if (strcmp(event, "continued") == 0)
        prb_dap_target_resumed(session);
    json_t *mapped = json_deep_copy(body);
    prb_dap_sources_map(session, mapped);
    prb_dap_send(session, event, mapped);
}
