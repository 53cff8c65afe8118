/*
 * Live data for WebSockets: clients subscribe to topics, and get a value when there is a new one.
 *
 * A topic is a question to a route, asked anew every so often by the workers (work.h): subscribers
 * that want the same share one feed, which is asked once for all of them.  Each subscription has
 * room for one value; a newer one takes the place of one that was not sent yet, and is counted.  A
 * feed whose subscribers have all values to send still is not asked.
 *
 * All of it is for the thread of libwebsockets alone.
 */
#ifndef PRB_SERVE_LIVE_H
#define PRB_SERVE_LIVE_H

#include "serve/doors/access.h"
#include "serve/work/work.h"

#define PRB_LIVE_MESSAGE_MAX 65536 /* bytes of one from a client */
#define PRB_LIVE_TOKEN_SECONDS 5.0 /* to show the token in */

struct prb_live;
struct prb_live_client;

/* writable(owner): the client has something to be sent.  NULL: NOMEM. */
struct prb_live *prb_live_new(const struct prb_serve *serve, struct prb_work *work,
                              void (*writable)(void *owner), struct prb_error *err);
/* After its clients. */
void prb_live_free(struct prb_live *live);

/* shown: what the handshake showed; grants: what that is worth, 0: the first message must be the
 * token.  NULL: NOMEM. */
struct prb_live_client *prb_live_client_new(struct prb_live *live, void *owner,
                                            const struct prb_shown *shown, unsigned grants);
void prb_live_client_free(struct prb_live_client *client);
/* Whether it has shown who it is. */
bool prb_live_client_is_known(const struct prb_live_client *client);
/* A part of a message, the last one of it with whole.  0: the connection goes on; else it ends with
 * this code, RFC 6455 section 7.4.1. */
int prb_live_take(struct prb_live_client *client, const void *bytes, size_t count, bool whole);
/* The next part of what is to be sent; 0: nothing is.  first, last: of its message. */
size_t prb_live_next(struct prb_live_client *client, void *out, size_t room, bool *first,
                     bool *last);

/* Ask what is due.  Seconds until something is again. */
double prb_live_turn(struct prb_live *live);
/* A question of a feed is answered (item->feed): takes the caller's share. */
void prb_live_finished(struct prb_live *live, struct prb_work_item *item);

#endif
