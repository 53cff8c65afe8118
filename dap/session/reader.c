/* What the client sends.  A request goes to the queue; cancel is carried out at once; an answer
 * goes to the thread that waits for it. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "dap/attach/attach.h"
#include "dap/attach/relay.h"
#include "dap/session/queue.h"
#include "dap/session/watch.h"

#define READ_AT_ONCE (64u << 10)

/* The request that cancel names, by its number or by its progress (progress.c). */
static json_int_t wanted_of(const json_t *arguments)
{
    const char *progress = json_string_value(json_object_get(arguments, "progressId"));
    long long seq;
    if (progress && sscanf(progress, "request-%lld", &seq) == 1)
        return seq;
    return json_integer_value(json_object_get(arguments, "requestId"));
}

static void answer_now(struct prb_dap_session *session, const json_t *request, bool success,
                       const char *text)
{
    json_t *command = json_object_get(request, "command");
    json_t *seq = json_object_get(request, "seq");
    json_t *response = json_pack("{s:s, s:I, s:b}", "type", "response", "request_seq",
                                 json_is_integer(seq) ? json_integer_value(seq) : (json_int_t)0,
                                 "success", success);
    json_object_set_new(response, "command",
                        json_is_string(command) ? json_incref(command) : json_string(""));
    if (text)
        json_object_set_new(response, "message", json_string(text));
    if (text)
        json_object_set_new(
            response, "body",
            json_pack("{s:{s:i, s:s}}", "error", "id", (int)PRB_CORRUPT, "format", text));
    prb_dap_outbox_put(session->outbox, response, false);
}

/* A client that is not known yet becomes known by the request that shows the token; all its other
 * requests are handled here and now.  True: the request goes to the queue. */
static bool is_for_workers(struct prb_dap_session *session, struct prb_dap_pending *pending)
{
    struct prb_error why = {0};
    const struct prb_dap_host_ops *ops = session->host->ops;
    if (session->started)
        return true;
    bool shown = prb_dap_shows_token(session, pending->message);
    if (shown && (!ops->admits || ops->admits(session->host, session->in, &why)) &&
        prb_dap_session_start(session, &why)) {
        session->wire.body_max = 0;
        return true;
    }
    if (shown) {
        answer_now(session, pending->message, false, why.text);
        prb_dap_session_leave(session);
    } else {
        prb_dap_dispatch(session, pending);
    }
    prb_dap_pending_free(pending);
    return false;
}

/* Takes message. */
static void take_request(struct prb_dap_session *session, json_t *message, size_t cost)
{
    const json_t *command = json_object_get(message, "command"),
                 *seq = json_object_get(message, "seq");
    const char *wrong = !json_is_string(command)                  ? "the request has no command"
                        : !json_is_integer(seq)                   ? "the request has no seq"
                        : prb_dap_queue_is_crowded(session, cost) ? "too many requests are waiting"
                                                                  : NULL;
    struct prb_dap_pending *pending = wrong ? NULL : calloc(1, sizeof *pending);
    bool cancels = pending && strcmp(json_string_value(command), "cancel") == 0;
    if (pending && (!cancels || prb_dap_relay_is_open(session))) {
        pending->message = message;
        pending->cost = cost;
        pending->seq = json_integer_value(seq);
        if (is_for_workers(session, pending))
            prb_dap_queue_add(session, pending);
        return;
    }
    const json_t *arguments = json_object_get(message, "arguments");
    if (pending && arguments && !json_is_object(arguments) && !json_is_null(arguments)) {
        answer_now(session, message, false, "the arguments of cancel must be an object");
    } else if (pending) {
        prb_dap_queue_cancel(session, wanted_of(json_object_get(message, "arguments")));
        answer_now(session, message, true, NULL);
    } else {
        answer_now(session, message, false, wrong ? wrong : "out of memory");
    }
    free(pending);
    json_decref(message);
}

/* The client's answer to a request of ours, for the thread that waits for it. */
static void take_answer(struct prb_dap_session *session, json_t *message)
{
    char key[32];
    if (prb_dap_relay_is_open(session)) {
        prb_dap_relay_pass(session, message);
        json_decref(message);
        return;
    }
    snprintf(key, sizeof key, "%lld",
             (long long)json_integer_value(json_object_get(message, "request_seq")));
    pthread_mutex_lock(&session->lock);
    const json_t *child = json_object_get(session->answers, key);
    if (json_is_integer(child)) {
        if (!json_is_true(json_object_get(message, "success")))
            prb_dap_watch_refused(session->watch, (pid_t)json_integer_value(child));
        json_object_del(session->answers, key);
    } else if (child) {
        json_object_set(session->answers, key, message);
        pthread_cond_broadcast(&session->changed);
    }
    pthread_mutex_unlock(&session->lock);
    json_decref(message);
}

static void take_body(struct prb_dap_session *session, const char *body, size_t len)
{
    struct prb_error why = {0};
    json_t *message = prb_dap_wire_parse(body, len, &why);
    const char *type = json_string_value(json_object_get(message, "type"));
    if (!message) {
        answer_now(session, NULL, false, why.text);
    } else if (type && strcmp(type, "response") == 0) {
        take_answer(session, message);
    } else if (type && strcmp(type, "event") == 0) {
        json_decref(message);
    } else if (type && strcmp(type, "request") == 0) {
        take_request(session, message, prb_dap_wire_cost(body, len));
    } else {
        answer_now(session, message, false, "type must be request, response or event");
        json_decref(message);
    }
}

/* All messages that have arrived; false: what follows cannot be parsed. */
static bool take_messages(struct prb_dap_session *session, struct prb_error *err)
{
    const char *body;
    size_t len;
    for (;;) {
        switch (prb_dap_wire_take(&session->wire, &body, &len, err)) {
        case PRB_DAP_TAKEN:
            take_body(session, body, len);
            break;
        case PRB_DAP_TAKEN_MORE:
            return true;
        case PRB_DAP_TAKEN_MALFORMED:
            return false;
        }
    }
}

static bool is_leaving(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool leaving = session->leaving;
    pthread_mutex_unlock(&session->lock);
    return leaving;
}

/* Time left to a client that has not shown the token, in ms; -1: it has shown it. */
static int patience(struct prb_dap_session *session, double since)
{
    pthread_mutex_lock(&session->lock);
    bool known = session->authorized;
    pthread_mutex_unlock(&session->lock);
    double left = PRB_DAP_STRANGER_MS - (prb_clock_s() - since) * 1000;
    return known ? -1 : left > 0 ? (int)left + 1 : 0;
}

/* The client has stopped sending.  It may have shut down only that direction (TCP does not say), so
 * it gets the answers that are still to come, for PRB_DAP_GOODBYE_MS. */
static void answer_rest(struct prb_dap_session *session)
{
    struct timespec deadline = prb_clock_in(PRB_DAP_GOODBYE_MS * 1e-3);
    pthread_mutex_lock(&session->lock);
    while (!session->leaving && prb_dap_queue_is_busy(session))
        if (pthread_cond_timedwait(&session->changed, &session->lock, &deadline) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&session->lock);
}

bool prb_dap_session_read(struct prb_dap_session *session, struct prb_error *err)
{
    PRB_AUTO_FREE char *chunk = malloc(READ_AT_ONCE);
    if (!chunk)
        return prb_fail(err, PRB_NOMEM, "out of memory");
    double since = prb_clock_s();
    while (!is_leaving(session)) {
        struct pollfd fds[] = {{.fd = session->in, .events = POLLIN},
                               {.fd = session->wake, .events = POLLIN}};
        int wait_ms = patience(session, since);
        if (!wait_ms)
            return prb_fail(err, PRB_PERMISSION, "the client sent no token within %d s",
                            PRB_DAP_STRANGER_MS / 1000);
        if (poll(fds, 2, wait_ms) < 0 && errno != EINTR)
            return prb_fail_sys(err, errno, "waiting for the client");
        if (!fds[0].revents || fds[1].revents)
            continue;
        ssize_t n = read(session->in, chunk, READ_AT_ONCE);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0) {
            answer_rest(session);
            return true;
        }
        session->wire.body_max = patience(session, since) < 0 ? 0 : PRB_DAP_STRANGER_MAX;
        if (!prb_dap_wire_add(&session->wire, chunk, (size_t)n))
            return prb_fail(err, PRB_NOMEM, "out of memory");
        if (!take_messages(session, err))
            return false;
    }
    return true;
}
