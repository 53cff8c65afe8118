/* What goes to the client: events and requests.  Events of the target wait while the request that
 * raised them is handled: clients want the response first. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "dap/session/session.h"

static json_t *event_of(const char *event, json_t *body)
{
    json_t *message = json_pack("{s:s, s:s}", "type", "event", "event", event);
    if (body)
        json_object_set_new(message, "body", body);
    return message;
}

static bool is_output(const json_t *message)
{
    return strcmp(json_string_value(json_object_get(message, "event")), "output") == 0;
}

/* Send message, or keep it until the response that it waits for is sent.  The lock is held.  Takes
 * message. */
static void put(struct prb_dap_session *session, json_t *message)
{
    bool delay = false;
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        delay |= session->running[worker] && session->running[worker]->delays;
    if (delay && !session->delayed)
        session->delayed = json_array();
    if (!delay)
        prb_dap_outbox_put(session->outbox, message, is_output(message));
    else if (json_array_size(session->delayed) < PRB_DAP_DELAYED_MAX)
        json_array_append_new(session->delayed, message);
    else
        json_decref(message);
}

void prb_dap_send_locked(struct prb_dap_session *session, const char *event, json_t *body)
{
    put(session, event_of(event, body));
}

void prb_dap_send(struct prb_dap_session *session, const char *event, json_t *body)
{
    pthread_mutex_lock(&session->lock);
    prb_dap_send_locked(session, event, body);
    pthread_mutex_unlock(&session->lock);
}

void prb_dap_send_now(struct prb_dap_session *session, const char *event, json_t *body)
{
    json_t *message = event_of(event, body);
    pthread_mutex_lock(&session->lock);
    prb_dap_outbox_put(session->outbox, message, is_output(message));
    pthread_mutex_unlock(&session->lock);
}

void prb_dap_event(struct prb_dap_session *session, const char *event, json_t *body)
{
    struct prb_dap_pending *mine = NULL;
    json_t *message = event_of(event, body);
    pthread_mutex_lock(&session->lock);
    for (unsigned worker = 0; worker < PRB_DAP_WORKERS; worker++)
        if (session->running[worker] && pthread_equal(session->workers[worker], pthread_self()))
            mine = session->running[worker];
    if (mine && !mine->events)
        mine->events = json_array();
    if (mine)
        json_array_append_new(mine->events, message);
    else
        put(session, message);
    pthread_mutex_unlock(&session->lock);
}

void prb_dap_say(struct prb_dap_session *session, bool important, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    strcat(text, "\n");
    json_t *body =
        json_pack("{s:s, s:s}", "category", important ? "important" : "console", "output", text);
    if (body) /* not UTF-8: it was cut */
        prb_dap_event(session, "output", body);
}

static void put_all(struct prb_dap_session *session, json_t **events)
{
    size_t i;
    json_t *event;
    json_array_foreach(*events, i, event)
        prb_dap_outbox_put(session->outbox, json_incref(event), is_output(event));
    json_decref(*events);
    *events = NULL;
}

void prb_dap_session_flush(struct prb_dap_session *session, struct prb_dap_pending *pending)
{
    pthread_mutex_lock(&session->lock);
    pending->delays = false;
    prb_dap_progress_end(session, pending);
    pending->announced = true; /* no progress for it from here on */
    put_all(session, &pending->events);
    put_all(session, &session->delayed);
    pthread_mutex_unlock(&session->lock);
}

/* ---- requests to the client ---- */

static bool wait_for(struct prb_dap_session *session, const char *key, double wait_s)
{
    struct timespec until = prb_clock_in(wait_s);
    while (json_is_null(json_object_get(session->answers, key)) && !session->leaving)
        if (pthread_cond_timedwait(&session->changed, &session->lock, &until) == ETIMEDOUT)
            break;
    return json_is_object(json_object_get(session->answers, key));
}

void prb_dap_start_debugging(struct prb_dap_session *session, json_t *arguments, pid_t pid)
{
    char key[32];
    json_t *message = json_pack("{s:s, s:s, s:o}", "type", "request", "command", "startDebugging",
                                "arguments", arguments);
    pthread_mutex_lock(&session->lock);
    json_int_t seq = prb_dap_outbox_put(session->outbox, message, false);
    snprintf(key, sizeof key, "%lld", (long long)seq);
    json_object_set_new(session->answers, key, json_integer(pid));
    pthread_mutex_unlock(&session->lock);
}

bool prb_dap_request_client(struct prb_dap_session *session, const char *command, json_t *arguments,
                            double wait_s, json_t **body_out, struct prb_error *err)
{
    char key[32];
    json_t *message =
        json_pack("{s:s, s:s, s:o}", "type", "request", "command", command, "arguments", arguments);
    pthread_mutex_lock(&session->lock);
    json_int_t seq = prb_dap_outbox_put(session->outbox, message, false);
    snprintf(key, sizeof key, "%lld", (long long)seq);
    if (wait_s <= 0) {
        pthread_mutex_unlock(&session->lock);
        return true;
    }
    json_object_set_new(session->answers, key, json_null());
    bool answered = wait_for(session, key, wait_s);
    json_t *answer = json_incref(json_object_get(session->answers, key));
    json_object_del(session->answers, key);
    pthread_mutex_unlock(&session->lock);
    bool good = answered && json_is_true(json_object_get(answer, "success"));
    const char *why = json_string_value(json_object_get(answer, "message"));
    if (good && body_out)
        *body_out = json_incref(json_object_get(answer, "body"));
    good = good || prb_fail(err, answered ? PRB_UNSUPPORTED : PRB_TIMEOUT,
                            "the client did not carry out %s: %s", command,
                            answered ? (why ? why : "it gave no reason") : "no answer");
    json_decref(answer); /* why is part of it */
    return good;
}
