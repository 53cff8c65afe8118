/*
 * The one thread that libwebsockets runs in.  What it does not do well stands in README.md: here
 * each answer says "Connection: close" (a pipelined POST spins 4.1.6), a timer sees clients that
 * leave, and lengths are checked before the library reads a body.
 */
#include "serve/http/http.h"

#include <fcntl.h>

#include "serve/http/parts.h"

#define HEADERS_MAX 8192
#define LIVE_RX 1024 /* that each WebSocket has for what comes */

/* ---- between threads ---- */

/* The library gets a descriptor of its own, which it closes when it likes (guests.h). */
static void adopt_one(struct prb_http *http, const struct given *given)
{
    lws_adoption_type how = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP;
    if (given->tls)
        how |= LWS_ADOPT_ALLOW_SSL;
    struct prb_http_seat *seat = calloc(1, sizeof *seat);
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
    struct prb_http_seat *seat = prb_http_seat_of(wsi);
    if (!seat)
        return;
    lws_set_opaque_user_data(wsi, NULL);
    if (seat->live)
        prb_live_client_free(seat->live);
    prb_guest_free(seat->guest);
    free(seat);
}

static void take_finished(struct prb_http *http)
{
    struct prb_work_item *item = http->work ? prb_work_finished(http->work) : NULL;
    while (item) {
        struct prb_work_item *next = item->next;
        struct lws *wsi = item->owner;
        if (item->feed) {
            prb_live_finished(http->live, item);
            prb_websocket_plan(http, 0);
            item = next;
            continue;
        }
        if (wsi)
            prb_exchange_answer(wsi, lws_wsi_user(wsi));
        prb_work_item_release(item);
        item = next;
    }
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t len)
{
    struct prb_exchange *connection = user;
    struct prb_http *http = prb_http_of(wsi);
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        return prb_exchange_begin(wsi, connection);
    case LWS_CALLBACK_HTTP_BODY:
        return prb_exchange_body(connection, in, len);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return prb_exchange_body_end(wsi, connection);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return prb_exchange_write(wsi, connection);
    case LWS_CALLBACK_ESTABLISHED:
        return prb_websocket_begin(wsi);
    case LWS_CALLBACK_RECEIVE:
        return prb_websocket_take(wsi, in, len);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return prb_websocket_give(wsi);
    case LWS_CALLBACK_TIMER:
        if (prb_websocket_is(wsi))
            return prb_websocket_timer(wsi);
        return prb_exchange_look(wsi, connection);
    case LWS_CALLBACK_CLOSED_HTTP:
        if (connection)
            prb_exchange_drop(connection);
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
        return prb_websocket_confirm(wsi);
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
        {"http", on_event, sizeof(struct prb_exchange), LIVE_RX, 0, NULL, 0},
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
        http->live = prb_live_new(serve, http->work, prb_websocket_writable, err);
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
    bool room = http->given_count < PRB_HTTP_GIVEN_MAX;
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
