/*
 * The server's inside: one thread in poll(2), its clients, their open requests.
 *
 * prb_server.lock guards clients' output, requests and the state; it is held for copies and
 * non-blocking sends only. The table of clients and their input belong to the server thread.
 */
#ifndef PRB_PROBE_SERVER_SERVER_H
#define PRB_PROBE_SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "config.h"
#include "inject/probe/server/request.h"
#include "inject/probe/socket_path.h"

#define PRB_PROBE_VERSION PACKAGE_VERSION

#define PRB_OUTPUT_WAIT                                                                            \
    (1u                                                                                            \
     << 20) /* bytes not yet sent, from which on output has to wait and requests are not read   \
                */
#define PRB_OUTPUT_MAX (16u << 20)  /* the client is dropped */
#define PRB_GREETING_NS 5000000000u /* a client that has not sent HELLO by then is dropped */
#define PRB_STUCK_NS 10000000000u   /* so is one that takes nothing for so long */

struct prb_client {
    int fd;
    char who[96]; /* "uid=0 by=123 (probing)" */
    bool greeted, dead;
    uint64_t since; /* accepted, prb_clock_ns */
    uint64_t stuck; /* since when nothing could be sent; 0: not */
    struct prb_buf in, out;
    size_t sent;                                    /* of out */
    struct prb_request *requests[PRB_REQUESTS_MAX]; /* NULL: free */
};

struct prb_request {
    atomic_uint holders;
    uint32_t number;
    const struct prb_request_kind *kind;
    struct prb_client *client; /* NULL: closed */
    bool cancelled;
    void *data;
    void (*release)(void *data);
};

enum prb_state { PRB_STATE_NONE, PRB_STATE_RUNS, PRB_STATE_ENDS };

struct prb_server {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* room in an output, or the state */
    enum prb_state state;
    atomic_int owner; /* the process that it runs in: a child of fork has another */
    int listener, wake;
    struct prb_socket_path place;
    double started; /* s since the epoch */
    unsigned clients_now;
    struct prb_client *clients[PRB_CLIENTS_MAX];
};
extern struct prb_server prb_server;

/* In a child of fork(2), which has no server: everything as at the very first; nothing is freed. */
void prb_server_reset(void);
/* The socket and the thread.  place is taken when it succeeds. */
bool prb_server_start(const struct prb_socket_path *place, struct prb_error *err);
/* Begin the end (any thread).  The rest is done by the server thread. */
void prb_server_stop(void);
/* Whether it runs, in this process and not in the one that this was forked from. */
bool prb_server_runs_here(void);
/* Wait until it has ended; false: the seconds are over. */
bool prb_server_wait(double seconds);
/* Wait until it has begun: parts are configured before.  Not in a thread that begins it. */
bool prb_server_wait_begun(double seconds);
/* With the lock held, under which the descriptor stays valid. */
void prb_server_wake(void);
/* On the server thread. */
void prb_server_drop(int place);
void prb_server_finish(void);

/* Called on the server thread, without the lock. */
struct prb_client *prb_client_new(int fd, const char *who);
void prb_client_free(struct prb_client *client);
/* What has come, up to the first lack.  Sets dead. */
void prb_client_read(struct prb_client *client);
/* Cancel all its requests but those of the kind keep: nobody waits for them any more. */
void prb_client_abandon(struct prb_client *client, const struct prb_request_kind *keep);
/* With the lock held: send what can be sent. */
void prb_client_flush(struct prb_client *client);
/* Bytes that wait to be sent. */
size_t prb_client_waiting(const struct prb_client *client);
/* With the lock held: one message for it. */
void prb_client_send(struct prb_client *client, enum prb_message_type type, uint32_t request,
                     const struct prb_buf *fields);
void prb_client_send_failure(struct prb_client *client, uint32_t request,
                             const struct prb_error *err);

/* On the server thread: open one; NULL with err: too many, or the number is in use. */
struct prb_request *prb_request_new(struct prb_client *client, uint32_t number,
                                    const struct prb_request_kind *kind, struct prb_error *err);

#endif
