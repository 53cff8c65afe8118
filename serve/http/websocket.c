/* WebSockets: the handshake, and bytes from and to serve/live (http.c). */
#include <string.h>
#include <strings.h>

#include "format/log_file.h"
#include "serve/http/parts.h"
#include "serve/http/request.h"

#define LIVE_PIECE                                                                                 \
    16384 /* bytes for a WebSocket at once: so much waits here for one that reads slowly */

static void turn(lws_sorted_usec_list_t *planned);

void prb_websocket_plan(struct prb_http *http, double seconds)
{
    lws_sul_schedule(http->context, 0, &http->turn, turn, (lws_usec_t)(seconds * 1e6) + 1);
}

static void turn(lws_sorted_usec_list_t *planned)
{
    struct prb_http *http = lws_container_of(planned, struct prb_http, turn);
    prb_websocket_plan(http, prb_live_turn(http->live));
}

void prb_websocket_writable(void *owner) { lws_callback_on_writable(owner); }

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
int prb_websocket_confirm(struct lws *wsi)
{
    struct prb_http *http = prb_http_of(wsi);
    struct prb_http_seat *seat = prb_http_seat_of(wsi);
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
static int live_is_known(struct lws *wsi, struct prb_http_seat *seat)
{
    if (!prb_live_client_is_known(seat->live))
        return 0;
    lws_set_timer_usecs(wsi, LWS_SET_TIMER_USEC_CANCEL);
    return prb_guest_let_in(seat->guest) ? 0 : -1;
}

int prb_websocket_begin(struct lws *wsi)
{
    struct prb_http_seat *seat = prb_http_seat_of(wsi);
    if (!seat || !seat->live)
        return -1;
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    lws_set_timer_usecs(wsi, (lws_usec_t)(PRB_LIVE_TOKEN_SECONDS * 1e6));
    return live_is_known(wsi, seat);
}

bool prb_websocket_is(struct lws *wsi)
{
    const struct prb_http_seat *seat = prb_http_seat_of(wsi);
    return seat && seat->live;
}

/* The time to show the token in is over. */
int prb_websocket_timer(struct lws *wsi)
{
    return prb_live_client_is_known(prb_http_seat_of(wsi)->live) ? 0 : -1;
}

int prb_websocket_take(struct lws *wsi, const void *bytes, size_t count)
{
    struct prb_http_seat *seat = prb_http_seat_of(wsi);
    if (!seat || !seat->live)
        return -1;
    int code = lws_frame_is_binary(wsi)
                   ? LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE
                   : prb_live_take(seat->live, bytes, count, lws_is_final_fragment(wsi));
    if (code) {
        lws_close_reason(wsi, (enum lws_close_status)code, NULL, 0);
        return -1;
    }
    prb_websocket_plan(prb_http_of(wsi), 0);
    return live_is_known(wsi, seat);
}

int prb_websocket_give(struct lws *wsi)
{
    struct prb_http *http = prb_http_of(wsi);
    struct prb_http_seat *seat = prb_http_seat_of(wsi);
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
        prb_websocket_plan(http, 0);
    else
        lws_callback_on_writable(wsi);
    return 0;
}
