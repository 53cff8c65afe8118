/* The life of a session: its threads start, the client is read until it leaves, all is freed.  See
 * session.h. */
#include "dap/session/session.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "dap/attach/ending.h"
#include "dap/attach/relay.h"
#include "dap/session/queue.h"

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
    json_decref(session->delayed);
    json_decref(session->stopped);
    json_decref(session->answers);
    json_decref(session->settings);
    json_decref(session->facts);
    json_decref(session->ascii_sources);
    json_decref(session->initialize);
    json_decref(session->breakpoint_sources);
    free(session->title);
    if (session->wake >= 0)
        close(session->wake);
    pthread_cond_destroy(&session->changed);
    pthread_cond_destroy(&session->progress_wake);
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        pthread_cond_destroy(&session->work[worker]);
    pthread_mutex_destroy(&session->lock);
}

bool prb_dap_session_run(struct prb_dap_host *host, int in, int out, bool known,
                         struct prb_error *err)
{
    struct prb_dap_session session = {.host = host,
                                      .requests = prb_dap_requests,
                                      .in = in,
                                      .wake = -1,
                                      .pidfd = -1,
                                      .known = known,
                                      .authorized = known};
    struct prb_error why = {0};
    pthread_mutex_init(&session.lock, NULL);
    prb_clock_cond_init(&session.changed);
    prb_clock_cond_init(&session.progress_wake);
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        prb_clock_cond_init(&session.work[worker]);
    bool good = begin(&session, out, &why);
    if (good) {
        good = prb_dap_session_read(&session, &why);
        if (!good) {
            prb_dap_say(&session, true, "%s; the connection is closed", why.text);
            prb_dap_send(&session, "terminated", NULL);
        }
        prb_dap_queue_cancel_all(&session);
        prb_dap_session_leave(&session);
        prb_dap_relay_end(&session);
        prb_dap_session_join(&session);
    }
    end(&session);
    if (!good && err)
        *err = why;
    return good;
}
