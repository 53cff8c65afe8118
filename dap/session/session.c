/* A session's life: its threads begin, the client is read until it leaves, all ends.  See
 * session.h. */
#include "dap/session/session.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "dap/attach/ending.h"
#include "dap/attach/relay.h"
#include "dap/session/queue.h"

static void look_up(struct prb_dap_session *session)
{
    uint64_t one = 1;
    ssize_t written = write(session->wake, &one, sizeof one);
    (void)written; /* full means that it is awake */
}

void prb_dap_session_leave(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->leaving = true;
    pthread_cond_broadcast(&session->changed);
    pthread_cond_broadcast(&session->begun);
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        pthread_cond_broadcast(&session->work[worker]);
    pthread_mutex_unlock(&session->lock);
    look_up(session);
}

static void client_lost(void *context) { prb_dap_session_leave(context); }

static bool begin(struct prb_dap_session *session, int out, struct prb_error *err)
{
    session->answers = json_object();
    session->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session->wake < 0)
        return prb_fail_sys(err, errno, "making a session");
    session->outbox = prb_dap_outbox_open(out, client_lost, session, err);
    return session->outbox && (!session->authorized || prb_dap_session_start(session, err));
}

bool prb_dap_session_start(struct prb_dap_session *session, struct prb_error *err)
{
    unsigned made = 0;
    if (!prb_dap_outbox_start(session->outbox, err))
        return false;
    int failed = 0;
    while (made < PRB_DAP_WORKERS && !failed)
        if (!(failed = pthread_create(&session->workers[made], NULL, prb_dap_queue_workers[made],
                                      session)))
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

static void end(struct prb_dap_session *session)
{
    for (struct prb_dap_pending *at = session->first, *next; at; at = next) {
        next = at->next;
        prb_dap_pending_free(at);
    }
    prb_dap_ending_release(session);
    prb_dap_relay_close(session);
    prb_dap_outbox_close(session->outbox, PRB_DAP_GOODBYE_MS);
    prb_dap_wire_deinit(&session->wire);
    prb_dap_paths_clear(&session->paths);
    prb_dap_thread_map_clear(&session->threads);
    json_decref(session->held);
    json_decref(session->stopped);
    json_decref(session->answers);
    json_decref(session->settings);
    json_decref(session->facts);
    json_decref(session->plain);
    json_decref(session->hello);
    json_decref(session->marked);
    free(session->title);
    if (session->wake >= 0)
        close(session->wake);
    pthread_cond_destroy(&session->changed);
    pthread_cond_destroy(&session->begun);
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        pthread_cond_destroy(&session->work[worker]);
    pthread_mutex_destroy(&session->lock);
}

bool prb_dap_session_run(struct prb_dap_host *host, int in, int out, bool known,
                         struct prb_error *err)
{
    struct prb_dap_session session = {
        .host = host, .in = in, .wake = -1, .pidfd = -1, .known = known, .authorized = known};
    struct prb_error why = {0};
    pthread_mutex_init(&session.lock, NULL);
    pthread_cond_init(&session.changed, NULL);
    pthread_cond_init(&session.begun, NULL);
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        pthread_cond_init(&session.work[worker], NULL);
    bool good = begin(&session, out, &why);
    if (good) {
        good = prb_dap_session_read(&session, &why);
        if (!good) {
            prb_dap_say(&session, true, "%s: the connection is closed", why.text);
            prb_dap_send(&session, "terminated", NULL);
        }
        prb_dap_queue_cancel_all(&session);
        prb_dap_session_leave(&session);
        prb_dap_relay_end(&session);
        for (unsigned worker = 0; session.started && worker < PRB_DAP_WORKERS; worker++)
            pthread_join(session.workers[worker], NULL);
        if (session.started)
            pthread_join(session.progress, NULL);
    }
    end(&session);
    if (!good && err)
        *err = why;
    return good;
}
