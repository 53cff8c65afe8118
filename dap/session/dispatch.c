/* One request: found, checked, handled, answered exactly once. */
#include <string.h>

#include "base/utf8.h"
#include "dap/attach/relay.h"
#include "dap/session/session.h"

const struct prb_dap_request *prb_dap_request_find(const struct prb_dap_session *session,
                                                   const char *command)
{
    for (size_t i = 0; session->requests[i]; i++)
        if (strcmp(session->requests[i]->command, command) == 0)
            return session->requests[i];
    return NULL;
}

/* ---- may it be handled now? ---- */

struct refusal {
    const char *message; /* a word of the protocol; NULL: err's text */
    struct prb_error err;
};

/* Also while one thread steps: the others are held, and only a request lets them go on. */
static bool is_stopped(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool stopped = session->stopped || session->alone_since > 0;
    pthread_mutex_unlock(&session->lock);
    return stopped;
}

static bool check_state(struct prb_dap_session *session, const struct prb_dap_request *request,
                        struct refusal *refusal)
{
    struct prb_error *err = &refusal->err;
    const struct prb_dap_backend *backend = prb_dap_session_backend(session);
    if (session->state == PRB_DAP_NEW && !(request->when & PRB_DAP_BEFORE))
        return prb_fail(err, PRB_USAGE, "the first request must be initialize");
    if (!(request->when & (PRB_DAP_ATTACHED | PRB_DAP_STOPPED)))
        return true;
    if (session->gone)
        return prb_fail(err, PRB_GONE, "the target has ended");
    if (!backend)
        return prb_fail(err, PRB_USAGE, "%s needs attach or launch first", request->command);
    if (request->method && !backend->ops->has(backend, request->method))
        return prb_fail(err, PRB_UNSUPPORTED,
                        "%s is not possible here: this session is read-only (%s)", request->command,
                        backend->ops->name);
    if (request->setting && !json_is_true(json_object_get(session->settings, request->setting)))
        return prb_fail(err, PRB_PERMISSION, "%s needs \"%s\": true in the configuration",
                        request->command, request->setting);
    if ((request->when & PRB_DAP_STOPPED) && !is_stopped(session)) {
        refusal->message = "notStopped";
        return prb_fail(err, PRB_USAGE, "the target runs: pause it first");
    }
    return true;
}

/* ---- the response ---- */

static json_t *failure_body(const struct prb_error *err, bool show)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    /* It may have other bytes: the target's, or a character that was cut off. */
    prb_utf8_add(&text, err->text, strlen(err->text));
    prb_buf_adds(&text, *err->remedy ? "; " : "");
    prb_utf8_add(&text, err->remedy, strlen(err->remedy));
    json_t *format = json_string(prb_buf_ok(&text) ? text.data : "out of memory");
    return json_pack("{s:{s:i, s:o, s:b}}", "error", "id", (int)err->code, "format", format,
                     "showUser", show);
}

static void respond(struct prb_dap_session *session, const struct prb_dap_pending *pending,
                    bool success, json_t *body, const struct refusal *refusal)
{
    json_t *response =
        json_pack("{s:s, s:I, s:O, s:b}", "type", "response", "request_seq", pending->seq,
                  "command", json_object_get(pending->message, "command"), "success", success);
    if (!success) {
        bool show = !refusal->message;
        body = failure_body(&refusal->err, show);
        const json_t *text = json_object_get(json_object_get(body, "error"), "format");
        json_object_set_new(response, "message",
                            refusal->message ? json_string(refusal->message)
                                             : json_string(json_string_value(text)));
    }
    if (body)
        json_object_set_new(response, "body", body);
    prb_dap_outbox_put(session->outbox, response, false);
}

static bool handle(struct prb_dap_session *session, struct prb_dap_pending *pending,
                   json_t **body_out, struct refusal *refusal)
{
    const char *command = json_string_value(json_object_get(pending->message, "command"));
    json_t *arguments = prb_dap_get(pending->message, "arguments");
    const struct prb_dap_request *request = prb_dap_request_find(session, command);
    if (!request)
        return prb_fail(&refusal->err, PRB_UNSUPPORTED, "the request %.60s is not supported",
                        command);
    if (arguments && !json_is_object(arguments))
        return prb_fail(&refusal->err, PRB_USAGE, "the arguments of %s must be an object", command);
    if (!check_state(session, request, refusal))
        return false;
    json_t *none = arguments ? NULL : json_object();
    pending->delays = !(request->when & PRB_DAP_RUNS_CODE);
    bool good = request->handle(session, arguments ? arguments : none, body_out, &refusal->err);
    json_decref(none);
    return good;
}

static bool was_cancelled(struct prb_dap_session *session, const struct prb_dap_pending *pending)
{
    pthread_mutex_lock(&session->lock);
    bool cancelled = pending->cancelled;
    pthread_mutex_unlock(&session->lock);
    return cancelled;
}

void prb_dap_dispatch(struct prb_dap_session *session, struct prb_dap_pending *pending)
{
    struct refusal refusal = {0};
    json_t *body = NULL;
    bool good = false;
    if (prb_dap_relay_is_open(session)) {
        prb_dap_relay_pass(session, pending->message);
        prb_dap_session_flush(session, pending);
        return;
    }
    if (was_cancelled(session, pending))
        prb_fail(&refusal.err, PRB_TIMEOUT, "cancelled");
    else
        good = handle(session, pending, &body, &refusal);
    if (!good && was_cancelled(session, pending))
        refusal.message = "cancelled";
    if (good && prb_dap_relay_is_open(session)) /* attach: the other server answers */
        prb_dap_relay_pass(session, pending->message);
    else
        respond(session, pending, good, body, &refusal);
    prb_dap_session_flush(session, pending);
}
