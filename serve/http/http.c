/*
 * The one thread that libwebsockets runs in.  What it does not do well stands in README.md: here
 * each answer says "Connection: close" (a pipelined POST spins 4.1.6), a timer sees clients that
 * leave, and lengths are checked before the library reads a body.
 */
#include "serve/http/http.h"

#include <fcntl.h>
#include <libwebsockets.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "format/log_file.h"
#include "serve/doors/access.h"
#include "serve/http/again.h"
#include "serve/http/assets.h"
#include "serve/http/request.h"
#include "serve/live/live.h"
#include "serve/work/work.h"

#define HEADERS_MAX 8192
#define PIECE 65536
#define LOOK_US 100000 /* whether the client is still there */
#define GIVEN_MAX (PRB_SERVE_KNOWN_MAX + PRB_SERVE_STRANGERS_MAX)
#define LIVE_PIECE                                                                                 \
    16384 /* bytes for a WebSocket at once: so much waits here for one that reads slowly */
#define LIVE_RX 1024 /* that each WebSocket has for what comes */

struct connection { /* libwebsockets' memory for each request */
    struct prb_work_item *item;
    size_t body_length; /* as the request says */
    size_t sent;
    bool refused;   /* the answer is there, and goes out when the body has come */
    bool whole;     /* the answer is there */
    bool begun;     /* its headers are sent */
    bool head;      /* without a body */
    bool waits;     /* a worker has it */
    bool stream;    /* it is a line for each time */
    bool no_status; /* errors, too, are answered by 200 */
    struct prb_again again;
};

struct seat { /* a connection that we gave to the library, which has some for itself */
    struct prb_guest *guest;
    struct prb_live_client *live; /* of a WebSocket */
};

struct prb_http {
    struct prb_serve *serve;
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct prb_work *work;
    struct prb_live *live;
    lws_sorted_usec_list_t turn;
    pthread_mutex_t lock; /* of given */
    struct given {
        struct prb_guest *guest;
        bool tls;
    } given[GIVEN_MAX];
    size_t given_count;
    unsigned char piece[LWS_PRE + PIECE];
};

static struct prb_http *http_of(struct lws *wsi) { return lws_context_user(lws_get_context(wsi)); }

static struct seat *seat_of(struct lws *wsi) { return lws_get_opaque_user_data(wsi); }

/* ---- a request's way ---- */

static void answer_now(struct lws *wsi, struct connection *connection)
{
    prb_guest_answer(seat_of(wsi)->guest);
    connection->whole = true;
    connection->waits = false;
    connection->sent = 0;
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, 30); /* to take it */
    lws_callback_on_writable(wsi);
}

static void refuse(struct lws *wsi, struct connection *connection, int status,
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

static bool ask(struct lws *wsi, struct connection *connection, int *status, struct prb_error *err)
{
    struct prb_http *http = http_of(wsi);
    struct prb_work_item *item = connection->item;
    struct prb_guest *guest = seat_of(wsi)->guest;
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

static void submit(struct lws *wsi, struct connection *connection)
{
    struct prb_error err = {0};
    struct prb_work_item *item = connection->item;
    if (!prb_work_add(http_of(wsi)->work, item)) {
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
static bool answer_asset(struct lws *wsi, struct connection *connection)
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

static int begin(struct lws *wsi, struct connection *connection)
{
    struct prb_error err = {0};
    int status = 0;
    if (connection->item || !seat_of(wsi)) /* a second request: one answer ends a connection */
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

static int take_body(struct connection *connection, const void *bytes, size_t count)
{
    struct prb_work_item *item = connection->item;
    if (!item || connection->whole || connection->refused)
        return 0;
    if (item->question.body.len + count > PRB_SERVE_BODY_MAX)
        return -1;
    prb_buf_add(&item->question.body, bytes, count);
    return prb_buf_ok(&item->question.body) ? 0 : -1;
}

static int end_body(struct lws *wsi, struct connection *connection)
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

static void drop(struct connection *connection)
{
    struct prb_work_item *item = connection->item;
    connection->item = NULL;
    if (!item)
        return;
    item->owner = NULL;
    prb_work_item_leave(item);
    prb_work_item_release(item);
}

/* ---- answers ---- */

static bool add(struct lws *wsi, const char *name, const char *value, unsigned char **at,
                unsigned char *end)
{
    return lws_add_http_header_by_name(wsi, (const unsigned char *)name,
                                       (const unsigned char *)value, (int)strlen(value), at,
                                       end) == 0;
}

static bool send_headers(struct lws *wsi, struct connection *connection)
{
    struct prb_http *http = http_of(wsi);
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
static int line_is_out(struct lws *wsi, struct connection *connection)
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
static int go_on(struct lws *wsi, struct connection *connection)
{
    struct prb_http *http = http_of(wsi);
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
    size_t count = left < PIECE ? left : PIECE;
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

/* ---- between threads ---- */

/* The library gets a descriptor of its own, which it closes when it likes (guests.h). */
static void adopt_one(struct prb_http *http, const struct given *given)
{
    lws_adoption_type how = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP;
    if (given->tls)
        how |= LWS_ADOPT_ALLOW_SSL;
    struct seat *seat = calloc(1, sizeof *seat);
    int fd = seat ? fcntl(given->guest->fd, F_DUPFD_CLOEXEC, 0) : -1;
    const lws_sock_file_fd_type socket = {.sockfd = fd};
    struct lws *wsi =
        fd >= 0 ? lws_adopt_descriptor_vhost(http->vhost, how, socket, NULL, NULL) : NULL;
    if (!wsi) { /* and it has closed fd */
        free(seat);
        prb_guest_free(given->guest);
        return;
    }
    seat->guest = given->guest;
    lws_set_opaque_user_data(wsi, seat);
}

static void adopt(struct prb_http *http)
{
    pthread_mutex_lock(&http->lock);
    for (size_t i = 0; i < http->given_count; i++)
        adopt_one(http, http->given + i);
    http->given_count = 0;
    pthread_mutex_unlock(&http->lock);
}

static void leave(struct lws *wsi)
{
    struct seat *seat = seat_of(wsi);
    if (!seat)
        return;
    lws_set_opaque_user_data(wsi, NULL);
    if (seat->live)
        prb_live_client_free(seat->live);
    prb_guest_free(seat->guest);
    free(seat);
}

/* ---- WebSockets ---- */

static void turn(lws_sorted_usec_list_t *planned);

static void plan(struct prb_http *http, double seconds)
{
    lws_sul_schedule(http->context, 0, &http->turn, turn, (lws_usec_t)(seconds * 1e6) + 1);
}

static void turn(lws_sorted_usec_list_t *planned)
{
    struct prb_http *http = lws_container_of(planned, struct prb_http, turn);
    plan(http, prb_live_turn(http->live));
}

static void writable(void *owner) { lws_callback_on_writable(owner); }

/* RFC 6455 section 4.2.1, which the library does not check. */
static bool is_handshake(struct lws *wsi, struct prb_error *err)
{
    static const struct {
        enum lws_token_indexes token;
        const char *value;
    } needed[] = {{WSI_TOKEN_GET_URI, PRB_LIVE_PATH},
                  {WSI_TOKEN_HTTP, "HTTP/1.1"},
                  {WSI_TOKEN_UPGRADE, "websocket"},
                  {WSI_TOKEN_VERSION, "13"}};
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[64];
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof needed / sizeof *needed; i++)
        ok = prb_request_header(wsi, needed[i].token, text, sizeof text) &&
             (needed[i].token == WSI_TOKEN_UPGRADE ? strcasecmp : strcmp)(text, needed[i].value) ==
                 0;
    ok = ok && prb_request_header(wsi, WSI_TOKEN_CONNECTION, text, sizeof text) &&
         strcasestr(text, "upgrade") && prb_request_header(wsi, WSI_TOKEN_KEY, text, sizeof text) &&
         strspn(text, base64) == 22 && strcmp(text + 22, "==") == 0; /* 16 bytes */
    return ok || prb_fail(err, PRB_USAGE, "a WebSocket of version 13 is at " PRB_LIVE_PATH);
}

/* 0: go on; else what the library is to be told. */
static int confirm_upgrade(struct lws *wsi)
{
    struct prb_http *http = http_of(wsi);
    struct seat *seat = seat_of(wsi);
    struct prb_shown shown;
    struct prb_error err = {0};
    char name[PRB_TOKEN_NAME];
    int status = 400;
    unsigned grants = 0;
    if (!seat || seat->live)
        return -1;
    bool ok = is_handshake(wsi, &err) && prb_request_shown(wsi, seat->guest, &shown, &err);
    if (ok && (seat->guest->peer.local || *shown.token || http->serve->options->no_token)) {
        grants = prb_access_grants(http->serve, &shown, name, &status, &err);
        ok = grants;
    }
    if (ok) {
        explicit_bzero(shown.token, sizeof shown.token);
        seat->live = prb_live_client_new(http->live, wsi, &shown, grants);
        status = 503;
    }
    if (seat->live)
        return 0;
    prb_log_file_add(http->serve->log, "refused a WebSocket of %s: %s", seat->guest->peer.name,
                     err.text);
    return lws_return_http_status(wsi, (unsigned)status, NULL) ? -1 : 1;
}

/* -1: it has shown who it is, but there are too many already. */
static int live_is_known(struct lws *wsi, struct seat *seat)
{
    if (!prb_live_client_is_known(seat->live))
        return 0;
    lws_set_timer_usecs(wsi, LWS_SET_TIMER_USEC_CANCEL);
    return prb_guest_let_in(seat->guest) ? 0 : -1;
}

static int live_begins(struct lws *wsi)
{
    struct seat *seat = seat_of(wsi);
    if (!seat || !seat->live)
        return -1;
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    lws_set_timer_usecs(wsi, (lws_usec_t)(PRB_LIVE_TOKEN_SECONDS * 1e6));
    return live_is_known(wsi, seat);
}

static bool is_live(struct lws *wsi)
{
    const struct seat *seat = seat_of(wsi);
    return seat && seat->live;
}

/* The time to show the token in is over. */
static int live_timer(struct lws *wsi)
{
    return prb_live_client_is_known(seat_of(wsi)->live) ? 0 : -1;
}

static int live_takes(struct lws *wsi, const void *bytes, size_t count)
{
    struct seat *seat = seat_of(wsi);
    if (!seat || !seat->live)
        return -1;
    int code = lws_frame_is_binary(wsi)
                   ? LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE
                   : prb_live_take(seat->live, bytes, count, lws_is_final_fragment(wsi));
    if (code) {
        lws_close_reason(wsi, (enum lws_close_status)code, NULL, 0);
        return -1;
    }
    plan(http_of(wsi), 0);
    return live_is_known(wsi, seat);
}

static int live_gives(struct lws *wsi)
{
    struct prb_http *http = http_of(wsi);
    struct seat *seat = seat_of(wsi);
    bool first, last;
    size_t count = seat && seat->live
                       ? prb_live_next(seat->live, http->piece + LWS_PRE, LIVE_PIECE, &first, &last)
                       : 0;
    if (!count)
        return 0;
    int flags = lws_write_ws_flags(LWS_WRITE_TEXT, first, last);
    if (lws_write(wsi, http->piece + LWS_PRE, count, (enum lws_write_protocol)flags) < 0)
        return -1;
    if (last)
        plan(http, 0);
    else
        lws_callback_on_writable(wsi);
    return 0;
}

/* A worker is done with it. */
static void take_answer(struct lws *wsi, struct connection *connection)
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
static int look_at_client(struct lws *wsi, struct connection *connection)
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

static void take_finished(struct prb_http *http)
{
    struct prb_work_item *item = http->work ? prb_work_finished(http->work) : NULL;
    while (item) {
        struct prb_work_item *next = item->next;
        struct lws *wsi = item->owner;
        if (item->feed) {
            prb_live_finished(http->live, item);
            plan(http, 0);
            item = next;
            continue;
        }
        if (wsi)
            take_answer(wsi, lws_wsi_user(wsi));
        prb_work_item_release(item);
        item = next;
    }
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t len)
{
    struct connection *connection = user;
    struct prb_http *http = http_of(wsi);
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        return begin(wsi, connection);
    case LWS_CALLBACK_HTTP_BODY:
        return take_body(connection, in, len);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return end_body(wsi, connection);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return go_on(wsi, connection);
    case LWS_CALLBACK_ESTABLISHED:
        return live_begins(wsi);
    case LWS_CALLBACK_RECEIVE:
        return live_takes(wsi, in, len);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return live_gives(wsi);
    case LWS_CALLBACK_TIMER:
        if (is_live(wsi))
            return live_timer(wsi);
        return look_at_client(wsi, connection);
    case LWS_CALLBACK_CLOSED_HTTP:
        if (connection)
            drop(connection);
        return 0;
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_WSI_DESTROY:
        leave(wsi);
        return 0;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        adopt(http);
        take_finished(http);
        return 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return confirm_upgrade(wsi);
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
        return prb_certificate_use(http->serve->certificate, user) ? 0 : -1;
    case LWS_CALLBACK_RAW_ADOPT:
    case LWS_CALLBACK_RAW_RX:
        return -1;
    default:
        return 0;
    }
}

static void log_line(int level, const char *line)
{
    (void)level;
    (void)line;
}

static void finished(void *context)
{
    struct prb_http *http = context;
    lws_cancel_service(http->context);
}

struct prb_http *prb_http_new(struct prb_serve *serve, const char *const *files,
                              struct prb_error *err)
{
    static const struct lws_protocols protocols[] = {
        {"http", on_event, sizeof(struct connection), LIVE_RX, 0, NULL, 0},
        {0},
    };
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_VALIDATE_UTF8,
        .protocols = protocols,
        .vhost_name = "probing",
        .server_string = "probing",
        .max_http_header_data = HEADERS_MAX,
        .timeout_secs = 10,
        .gid = (gid_t)-1,
        .uid = (uid_t)-1,
    };
    struct prb_http *http = calloc(1, sizeof *http);
    if (!http)
        return PRB_NULL(prb_nomem(err));
    if (serve->certificate) {
        info.options |=
            LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX;
        info.alpn = "http/1.1";
    }
    http->serve = serve;
    pthread_mutex_init(&http->lock, NULL);
    lws_set_log_level(0, log_line);
    info.user = http;
    http->context = lws_create_context(&info);
    http->vhost = http->context ? lws_create_vhost(http->context, &info) : NULL;
    if (http->vhost)
        http->work = prb_work_new(serve, files, finished, http, err);
    else
        prb_fail(err, PRB_INTERNAL, "libwebsockets does not start");
    if (http->work)
        serve->targets = prb_work_targets(http->work);
    if (http->work)
        http->live = prb_live_new(serve, http->work, writable, err);
    if (http->live)
        return http;
    prb_http_free(http);
    return NULL;
}

void prb_http_free(struct prb_http *http)
{
    if (http->work)
        prb_work_free(http->work);
    http->work = NULL;
    if (http->context)
        lws_context_destroy(http->context);
    prb_live_free(http->live);
    for (size_t i = 0; i < http->given_count; i++)
        prb_guest_free(http->given[i].guest);
    pthread_mutex_destroy(&http->lock);
    free(http);
}

void prb_http_run(struct prb_http *http)
{
    while (!atomic_load(&http->serve->ending) && lws_service(http->context, 0) >= 0)
        ;
}

void prb_http_give(struct prb_http *http, struct prb_guest *guest, bool tls)
{
    pthread_mutex_lock(&http->lock);
    bool room = http->given_count < GIVEN_MAX;
    if (room)
        http->given[http->given_count++] = (struct given){guest, tls};
    pthread_mutex_unlock(&http->lock);
    if (!room)
        prb_guest_free(guest);
    lws_cancel_service(http->context);
}

void prb_http_end(struct prb_http *http)
{
    atomic_store(&http->serve->ending, true);
    lws_cancel_service(http->context);
}
