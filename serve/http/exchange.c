/* A request and its answer, as libwebsockets calls for them (http.c). */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "format/log_file.h"
#include "serve/http/assets.h"
#include "serve/http/parts.h"
#include "serve/http/request.h"

#define LOOK_US 100000 /* whether the client is still there */

/* ---- the request ---- */

static void answer_now(struct lws *wsi, struct prb_exchange *connection)
{
    prb_guest_answer(prb_http_seat_of(wsi)->guest);
    connection->whole = true;
    connection->waits = false;
    connection->sent = 0;
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, 30); /* to take it */
    lws_callback_on_writable(wsi);
}

static void refuse(struct lws *wsi, struct prb_exchange *connection, int status,
                   const struct prb_error *err)
{
    struct prb_work_item *item = connection->item;
    item->answer.status = status;
    prb_answer_error(&item->answer, err);
    if (connection->stream)
        prb_again_frame(&item->answer);
    /* A client that is cut off while it sends its body does not read the answer. */
    connection->refused = connection->body_length > 0;
    if (!connection->refused)
        answer_now(wsi, connection);
}

static bool ask(struct lws *wsi, struct prb_exchange *connection, int *status,
                struct prb_error *err)
{
    struct prb_http *http = prb_http_of(wsi);
    struct prb_work_item *item = connection->item;
    struct prb_guest *guest = prb_http_seat_of(wsi)->guest;
    struct prb_shown shown;
    int length_status = 0;
    struct prb_error length_err = {0};
    bool measured = prb_request_length(wsi, &connection->body_length, &length_status, &length_err);
    bool taken = prb_request_shown(wsi, guest, &shown, err);
    unsigned grants =
        taken ? prb_access_grants(http->serve, &shown, item->question.token_name, status, err) : 0;
    explicit_bzero(shown.token, sizeof shown.token);
    if (!taken || !grants) {
        prb_log_file_add(http->serve->log, "refused %s: %s", guest->peer.name, err->text);
        return false;
    }
    if (!prb_guest_let_in(guest)) {
        *status = 503;
        return prb_fail(err, PRB_BUSY, "there are %d connections already", PRB_SERVE_KNOWN_MAX);
    }
    snprintf(item->question.who, sizeof item->question.who, "%s", guest->peer.name);
    item->question.grants = grants;
    item->question.proxied = shown.proxied;
    item->question.local = guest->peer.local && !shown.proxied;
    prb_request_rest(wsi, http->serve, &item->question);
    connection->no_status = prb_request_hides_status(wsi);
    if (!measured) {
        *err = length_err;
        *status = length_status;
        return false;
    }
    if (!prb_request_method(wsi, &item->question, &connection->head, status, err) ||
        !prb_request_query(wsi, &item->question, err) || !prb_route_find(&item->job, status, err) ||
        !prb_again_take(&item->job, &item->question, &connection->again, err))
        return false;
    if (!prb_access_may(http->serve, &item->question, item->job.route->grant, err))
        return false;
    bool body = item->question.method == PRB_POST || item->question.method == PRB_PUT;
    if (body && lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) <= 0) {
        *status = 411;
        return prb_fail(err, PRB_USAGE, "the request needs a Content-Length");
    }
    return body || !connection->body_length || prb_fail(err, PRB_USAGE, "this method has no body");
}

static void submit(struct lws *wsi, struct prb_exchange *connection)
{
    struct prb_error err = {0};
    struct prb_work_item *item = connection->item;
    if (!prb_work_add(prb_http_of(wsi)->work, item)) {
        prb_fail(&err, PRB_BUSY, "too many questions wait");
        connection->body_length = 0; /* it has come */
        refuse(wsi, connection, 503, &err);
        return;
    }
    connection->waits = true;
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0); /* the job has its own deadline */
    lws_set_timer_usecs(wsi, LOOK_US);
}

/* The page's own files are for everybody: they say nothing of any process. */
static bool answer_asset(struct lws *wsi, struct prb_exchange *connection)
{
    char *uri = NULL, path[128], known[64];
    int len = 0, method = lws_http_get_uri_and_method(wsi, &uri, &len);
    if ((method != LWSHUMETH_GET && method != LWSHUMETH_HEAD) || len <= 0 ||
        len >= (int)sizeof path || memchr(uri, '\0', (size_t)len) ||
        lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) > 0 ||
        lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0)
        return false;
    snprintf(path, sizeof path, "%.*s", len, uri);
    if (!prb_request_header(wsi, WSI_TOKEN_HTTP_IF_NONE_MATCH, known, sizeof known))
        *known = '\0';
    connection->head = method == LWSHUMETH_HEAD;
    return prb_assets_answer(path, known, &connection->item->answer);
}

int prb_exchange_begin(struct lws *wsi, struct prb_exchange *connection)
{
    struct prb_error err = {0};
    int status = 0;
    if (connection->item ||
        !prb_http_seat_of(wsi)) /* a second request: one answer ends a connection */
        return -1;
    connection->item = prb_work_item_new(wsi);
    if (!connection->item)
        return -1;
    if (answer_asset(wsi, connection))
        answer_now(wsi, connection);
    else if (!ask(wsi, connection, &status, &err))
        refuse(wsi, connection, status, &err);
    else if (!connection->body_length)
        submit(wsi, connection);
    return 0;
}

int prb_exchange_body(struct prb_exchange *connection, const void *bytes, size_t count)
{
    struct prb_work_item *item = connection->item;
    if (!item || connection->whole || connection->refused)
        return 0;
    if (item->question.body.len + count > PRB_SERVE_BODY_MAX)
        return -1;
    prb_buf_add(&item->question.body, bytes, count);
    return prb_buf_ok(&item->question.body) ? 0 : -1;
}

int prb_exchange_body_end(struct lws *wsi, struct prb_exchange *connection)
{
    if (connection->refused)
        answer_now(wsi, connection);
    else if (connection->item && !connection->whole && !connection->waits)
        submit(wsi, connection);
    return 0;
}

/* RFC 9112 section 9.6: who shuts its side has left. */
static bool has_left(struct lws *wsi)
{
    struct pollfd polled = {lws_get_socket_fd(wsi), POLLRDHUP, 0};
    return poll(&polled, 1, 0) > 0 && polled.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

void prb_exchange_drop(struct prb_exchange *connection)
{
    struct prb_work_item *item = connection->item;
    connection->item = NULL;
    if (!item)
        return;
    item->owner = NULL;
    prb_work_item_leave(item);
    prb_work_item_release(item);
}

/* ---- the answer ---- */

static bool add(struct lws *wsi, const char *name, const char *value, unsigned char **at,
                unsigned char *end)
{
    return lws_add_http_header_by_name(wsi, (const unsigned char *)name,
                                       (const unsigned char *)value, (int)strlen(value), at,
                                       end) == 0;
}

static bool send_headers(struct lws *wsi, struct prb_exchange *connection)
{
    struct prb_http *http = prb_http_of(wsi);
    const struct prb_answer *answer = &connection->item->answer;
    unsigned char *start = http->piece + LWS_PRE, *at = start, *end = start + 4096;
    int status = answer->status ? answer->status : 200;
    bool stream = connection->stream; /* its end is not known (RFC 9112 section 7.1) */
    bool hide = connection->no_status && status >= 400;
    char number[16];
    snprintf(number, sizeof number, "%d", status);
    const char *type = stream ? "application/jsonl" : answer->type;
    bool ok =
        lws_add_http_header_status(wsi, hide ? 200 : (unsigned)status, &at, end) == 0 &&
        (!hide || add(wsi, "probing-status:", number, &at, end)) &&
        (!type || add(wsi, "content-type:", type, &at, end)) &&
        (stream ? add(wsi, "transfer-encoding:", "chunked", &at, end)
                : lws_add_http_header_content_length(wsi, answer->body.len, &at, end) == 0) &&
        add(wsi, "connection:", "close", &at, end) &&
        add(wsi, "cache-control:", answer->caching ? answer->caching : "no-store", &at, end) &&
        (!answer->encoding || add(wsi, "content-encoding:", answer->encoding, &at, end)) &&
        add(wsi, "x-content-type-options:", "nosniff", &at, end) &&
        add(wsi, "cross-origin-resource-policy:", "same-origin", &at, end) &&
        add(wsi, "referrer-policy:", "no-referrer", &at, end) &&
        add(wsi, "content-security-policy:",
            answer->policy ? answer->policy : "default-src 'none'; frame-ancestors 'none'", &at,
            end) &&
        (!*answer->etag || add(wsi, "etag:", answer->etag, &at, end)) &&
        (!answer->truncated || add(wsi, "probing-truncated:", "1", &at, end)) &&
        (status != 401 || add(wsi, "www-authenticate:", "Bearer", &at, end)) &&
        (!*answer->allow || add(wsi, "allow:", answer->allow, &at, end)) &&
        (status != 429 || add(wsi, "retry-after:", "60", &at, end)) &&
        (status != 503 || add(wsi, "retry-after:", "1", &at, end)) &&
        lws_finalize_http_header(wsi, &at, end) == 0;
    bool last = connection->head || !answer->body.len;
    return ok && lws_write(wsi, start, (size_t)(at - start),
                           last ? LWS_WRITE_HTTP_HEADERS | LWS_WRITE_H2_STREAM_END
                                : LWS_WRITE_HTTP_HEADERS) >= 0;
}

/* A line is with the kernel: another one, or the end of them. */
static int line_is_out(struct lws *wsi, struct prb_exchange *connection)
{
    struct prb_work_item *item = connection->item;
    if (connection->again.ends)
        return -1;
    if (prb_again_goes_on(&connection->again, &item->answer)) {
        connection->whole = false;
        lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
        lws_set_timer_usecs(wsi, LOOK_US);
        return 0;
    }
    connection->again.ends = true;
    prb_answer_deinit(&item->answer);
    prb_buf_adds(&item->answer.body, "0\r\n\r\n");
    answer_now(wsi, connection);
    return prb_buf_ok(&item->answer.body) ? 0 : -1;
}

/* Some of it each time that the socket takes some; -1: the connection ends. */
int prb_exchange_write(struct lws *wsi, struct prb_exchange *connection)
{
    struct prb_http *http = prb_http_of(wsi);
    if (!connection->item || !connection->whole)
        return 0;
    const struct prb_buf *body = &connection->item->answer.body;
    if (!connection->begun) {
        connection->begun = true;
        if (!send_headers(wsi, connection))
            return -1;
        lws_callback_on_writable(wsi);
        return 0;
    }
    size_t left = connection->head ? 0 : body->len - connection->sent;
    if (!left) /* all is with the kernel: this call came because nothing is held back */
        return connection->stream ? line_is_out(wsi, connection) : -1;
    size_t count = left < PRB_HTTP_PIECE ? left : PRB_HTTP_PIECE;
    memcpy(http->piece + LWS_PRE, body->data + connection->sent, count);
    bool last = count == left && (!connection->stream || connection->again.ends);
    if (lws_write(wsi, http->piece + LWS_PRE, count, last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) <
        0)
        return -1;
    connection->sent += count;
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, 30);
    lws_callback_on_writable(wsi);
    return 0;
}

/* A worker is done with it. */
void prb_exchange_answer(struct lws *wsi, struct prb_exchange *connection)
{
    if (prb_again_rests(&connection->again, &connection->item->answer)) {
        connection->waits = false;
        return; /* the timer goes on */
    }
    lws_set_timer_usecs(wsi, LWS_SET_TIMER_USEC_CANCEL);
    if (!connection->begun) /* an error before the first line is an answer as any */
        connection->stream =
            connection->again.every > 0 && !connection->head && !connection->item->answer.status;
    if (connection->stream)
        prb_again_frame(&connection->item->answer);
    answer_now(wsi, connection);
}

/* While a worker has a question, or it waits for its next time: whether the client is there. */
int prb_exchange_look(struct lws *wsi, struct prb_exchange *connection)
{
    if (!connection || !(connection->waits || connection->again.at > 0))
        return 0;
    if (has_left(wsi))
        return -1;
    lws_set_timer_usecs(wsi, LOOK_US);
    if (connection->waits || prb_clock_s() < connection->again.at)
        return 0;
    prb_again_renew(&connection->again, &connection->item->job);
    submit(wsi, connection);
    return 0;
}
