/*
 * What the files of the server's one thread share: the thread (http.c), a request and its answer
 * (exchange.c), WebSockets (websocket.c).
 */
#ifndef PRB_SERVE_HTTP_PARTS_H
#define PRB_SERVE_HTTP_PARTS_H

#include <libwebsockets.h>
#include <pthread.h>

#include "serve/doors/access.h"
#include "serve/http/again.h"
#include "serve/http/http.h"
#include "serve/live/live.h"
#include "serve/work/work.h"

#define PRB_HTTP_PIECE 65536
#define PRB_HTTP_GIVEN_MAX (PRB_SERVE_KNOWN_MAX + PRB_SERVE_STRANGERS_MAX)

struct prb_exchange { /* libwebsockets' memory for each request */
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

struct prb_http_seat { /* a connection that we gave to the library, which has some for itself */
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
    } given[PRB_HTTP_GIVEN_MAX];
    size_t given_count;
    unsigned char piece[LWS_PRE + PRB_HTTP_PIECE];
};

static inline struct prb_http *prb_http_of(struct lws *wsi)
{
    return lws_context_user(lws_get_context(wsi));
}

static inline struct prb_http_seat *prb_http_seat_of(struct lws *wsi)
{
    return lws_get_opaque_user_data(wsi);
}

/* ---- exchange.c; an int is what the library is told: 0: go on, -1: the connection ends ---- */

int prb_exchange_begin(struct lws *wsi, struct prb_exchange *connection);
int prb_exchange_body(struct prb_exchange *connection, const void *bytes, size_t count);
int prb_exchange_body_end(struct lws *wsi, struct prb_exchange *connection);
/* A worker is done with it. */
void prb_exchange_answer(struct lws *wsi, struct prb_exchange *connection);
/* Some of the answer each time that the socket takes some. */
int prb_exchange_write(struct lws *wsi, struct prb_exchange *connection);
/* While a worker has a question, or it waits for its next time: whether the client is there. */
int prb_exchange_look(struct lws *wsi, struct prb_exchange *connection);
void prb_exchange_drop(struct prb_exchange *connection);

/* ---- websocket.c; the same ---- */

int prb_websocket_confirm(struct lws *wsi);
int prb_websocket_begin(struct lws *wsi);
bool prb_websocket_is(struct lws *wsi);
/* The time to show the token in is over. */
int prb_websocket_timer(struct lws *wsi);
int prb_websocket_take(struct lws *wsi, const void *bytes, size_t count);
int prb_websocket_give(struct lws *wsi);
void prb_websocket_writable(void *owner);
/* Ask for the feeds that are due, in so many seconds. */
void prb_websocket_plan(struct prb_http *http, double seconds);

#endif
