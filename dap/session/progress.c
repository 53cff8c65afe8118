/* Progress events: the client shows requests that take longer than MOMENT_S, and can cancel
 * them. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "dap/session/session.h"

#define MOMENT_S 1.0

static json_t *event_of(const char *event, const struct prb_dap_pending *pending)
{
    char id[40];
    snprintf(id, sizeof id, "request-%lld", (long long)pending->seq);
    return json_pack("{s:s, s:s, s:{s:s}}", "type", "event", "event", event, "body", "progressId",
                     id);
}

static void begin(struct prb_dap_session *session, struct prb_dap_pending *pending)
{
    json_t *event = event_of("progressStart", pending), *body = json_object_get(event, "body");
    const char *command = json_string_value(json_object_get(pending->message, "command"));
    json_object_set_new(body, "title", json_string(command));
    json_object_set_new(body, "requestId", json_integer(pending->seq));
    json_object_set_new(body, "cancellable", json_true());
    pending->announced = true;
    prb_dap_outbox_put(session->outbox, event, false);
}

void prb_dap_progress_end(struct prb_dap_session *session, const struct prb_dap_pending *pending)
{
    if (pending->announced)
        prb_dap_outbox_put(session->outbox, event_of("progressEnd", pending), false);
}

void *prb_dap_progress_run(void *context)
{
    struct prb_dap_session *session = context;
    pthread_mutex_lock(&session->lock);
    while (!session->leaving) {
        struct prb_dap_pending *pending = session->running[0];
        if (!pending || pending->announced || !session->client.progress) {
            session->progress_idle = true;
            pthread_cond_wait(&session->progress_wake, &session->lock);
            session->progress_idle = false;
            continue;
        }
        double left = pending->since + MOMENT_S - prb_clock_s();
        if (left <= 0) {
            begin(session, pending);
            continue;
        }
        prb_dap_session_wait(session, &session->progress_wake, left);
    }
    pthread_mutex_unlock(&session->lock);
    return NULL;
}
