/*
 * A session: one client, from its first byte to its last, and what it debugs.
 *
 * THREADS.  The reader (prb_dap_session_run's caller), the worker (handlers), a second worker
 * for what must not wait for it (`pause` while an evaluation runs), the writer (outbox.h), and
 * the back end's, which tells events.  `lock` guards what several of them use; never held
 * while the back end is called.  Until the client is known or has shown the token there is the
 * reader alone, which handles what comes by itself.
 */
#ifndef PRB_DAP_SESSION_H
#define PRB_DAP_SESSION_H

#include <pthread.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "dap/client/outbox.h"
#include "dap/client/paths.h"
#include "dap/client/wire.h"
#include "dap/session/request.h"
#include "dap/session/thread_map.h"

#define PRB_DAP_PENDING_MAX 4096          /* requests that wait; more are refused */
#define PRB_DAP_PENDING_COST (128u << 20) /* bytes that they take */
#define PRB_DAP_STRANGER_MS 30000         /* within which a client shows the token */
#define PRB_DAP_HELD_MAX 4096             /* events that wait for a response */
#define PRB_DAP_GOODBYE_MS 2000           /* for the client to take what was said last */
#define PRB_DAP_WORKERS 2

enum prb_dap_state {
    PRB_DAP_NEW,
    PRB_DAP_INITIALIZED,
    PRB_DAP_IS_ATTACHED,
    PRB_DAP_CONFIGURED,
    PRB_DAP_ENDED
};

/* What the transport is and allows; the session's caller keeps it. */
struct prb_dap_host {
    const struct prb_dap_host_ops *ops;
    const char *token; /* that a client must show unless it is known, or NULL */
    pid_t pid;         /* what `attach` without a process means; 0: it must say */
    const char *file;  /* the same: a core or snapshot */
    bool look;         /* without the probe */
    /* attach may name a listening server by "connect", whose session this then is */
    bool follows;
    bool keeps;          /* there may be a next client, for which the target can be left standing */
    const char *address; /* "HOST:PORT" where the server listens, or NULL (stdio, Unix socket) */
};
struct prb_dap_host_ops {
    /* Whether this host's clients may see a process at all; NULL: every one.  PERMISSION. */
    bool (*allows)(struct prb_dap_host *host, pid_t pid, struct prb_error *err);
    /* The back end of a process: opened, or the one that was kept; *stopped_out: the body of the
     * event it stands at, a new reference or NULL.  BUSY: another client debugs it. */
    struct prb_dap_backend *(*claim)(struct prb_dap_host *host, pid_t pid,
                                     struct prb_dap_session *session, json_t **stopped_out,
                                     struct prb_error *err);
    /* A client that was none of the known has shown the token; NULL: nobody asks.  BUSY: there
     * are too many. */
    bool (*admits)(struct prb_dap_host *host, int in, struct prb_error *err);
    /* The session leaves it; keep: as it stands (suspendDebuggee), only when the host keeps. */
    void (*release)(struct prb_dap_host *host, struct prb_dap_backend *backend, json_t *stopped,
                    bool keep);
};

/* What the client said of itself (initialize). */
struct prb_dap_client {
    bool lines_from_0, columns_from_0, uris;
    bool progress, invalidated, memory, start_debugging, run_in_terminal, variable_type, paging;
    /* rows of a stack that are not the program's become one, and it takes more rows than it
     * asked for */
    bool folds;
    char name[64];
};

struct prb_dap_pending;

struct prb_dap_session {
    struct prb_dap_host *host;
    const struct prb_dap_request *const *requests; /* that it answers; ends with NULL */
    int in;
    int wake; /* eventfd: the reader looks up */
    struct prb_dap_outbox *outbox;
    struct prb_dap_wire wire;

    pthread_mutex_t lock;
    pthread_cond_t changed;               /* answers, a worker is free, leaving */
    pthread_cond_t work[PRB_DAP_WORKERS]; /* a request waits for the worker */
    /* for the progress thread, when it waits for nothing else */
    pthread_cond_t begun;
    bool watches_none; /* that thread does so */
    enum prb_dap_state state;
    struct prb_dap_pending *first, *last; /* that wait */
    struct prb_dap_pending *running[PRB_DAP_WORKERS];
    size_t pending, cost; /* how many they are, and bytes that they take */
    bool started;         /* the workers and the other threads are there; the reader's own */
    pthread_t workers[PRB_DAP_WORKERS];
    pthread_t progress;
    json_t *held;    /* the target's events, until the response of what runs is out */
    json_t *stopped; /* body of the last `stopped` while the target stands, or NULL */
    bool unsaid;     /* that event was not sent yet: before configurationDone */
    bool leaving;    /* nothing is handled any more */
    bool gone;       /* the target */
    struct prb_dap_thread_map threads; /* of frames and values */
    json_t *answers;                   /* of the client to our requests, by seq as text */

    /* The worker's own. */
    struct prb_dap_client client;
    bool known, authorized;          /* it needs no token; it needs none, or has shown it */
    unsigned refused;                /* wrong tokens */
    struct prb_dap_backend *backend; /* changed with the lock, since the second worker asks, too */
    pid_t pid;                       /* of the target; 0: a file */
    int pidfd;                       /* of it; -1: none */
    char *title;                     /* of the target, for people */
    json_t *settings;                /* the arguments of attach */
    json_t *facts;                   /* the back end's answer to attach */
    json_t *plain;                   /* {path: true} of sources that are ASCII: client/columns.c */
    json_t *marked;          /* list of the sources that the client has set breakpoints in */
    bool debugpy;            /* the client speaks the stock Python debugger's dialect */
    bool keep;               /* the back end is kept as it stands */
    double evaluate_timeout; /* s */
    struct prb_dap_paths paths;
    json_t *hello; /* arguments of initialize, where the host follows */
    /* to the server whose session this is; set once, with the lock (attach/relay.h) */
    struct prb_dap_relay *relay;
    struct prb_dap_countdown *countdown; /* both: read with the lock by others than the worker */
    struct prb_dap_watch *watch;
    struct prb_dap_program *program; /* that launch started */
    bool leave_program;              /* it runs on */
};

/* Serve one client until it leaves or the target ends; the target is then as before.  in and out
 * stay the caller's. known: the client needs to show no token. */
bool prb_dap_session_run(struct prb_dap_host *host, int in, int out, bool known,
                         struct prb_error *err);

/* ---- for the session's own parts ---- */

/* reader.c: until the client leaves.  False: it sent what is no message, or shows no token. */
bool prb_dap_session_read(struct prb_dap_session *session, struct prb_error *err);
/* threads.c: the client is no stranger any more, all threads begin.  False: the session ends. */
bool prb_dap_session_start(struct prb_dap_session *session, struct prb_error *err);
/* Wait until they have ended, which prb_dap_session_leave makes them do. */
void prb_dap_session_join(struct prb_dap_session *session);
/* Whether what is attached is a process with the probe, which can be stopped and ended. */
bool prb_dap_session_is_live(struct prb_dap_session *session);

/* target_events.c: an event of the target, from any thread; body borrowed. */
void prb_dap_target_event(void *session, const char *event, json_t *body);
/* An event of ours, from any thread, sent at once.  Takes body. */
void prb_dap_send(struct prb_dap_session *session, const char *event, json_t *body);
/* The same; the caller has locked session->lock. */
void prb_dap_send_locked(struct prb_dap_session *session, const char *event, json_t *body);
/* One line in the client's console; important: as a message that pops up. */
void prb_dap_say(struct prb_dap_session *session, bool important, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A request of ours to the client.  wait_s 0: its answer is not waited for.  *body_out: a new
 * reference. */
bool prb_dap_request_client(struct prb_dap_session *session, const char *command, json_t *arguments,
                            double wait_s, json_t **body_out, struct prb_error *err);
/* Handle one message of the client, on its worker (dispatch.c). */
void prb_dap_dispatch(struct prb_dap_session *session, struct prb_dap_pending *pending);
/* The last response of a request was queued: what waited for it goes out. */
void prb_dap_session_flush(struct prb_dap_session *session, struct prb_dap_pending *pending);
/* progress.c: a thread that tells what takes long, until the session leaves. */
void *prb_dap_progress_run(void *session);
/* It is done; the lock is held. */
void prb_dap_progress_end(struct prb_dap_session *session, const struct prb_dap_pending *pending);
/* requests/breakpoints.c: take all of them out, for who comes next. */
void prb_dap_breakpoints_clear(struct prb_dap_session *session);
/* Ask with a deadline (s; 0: none). */
json_t *prb_dap_ask_for(struct prb_dap_session *session, const char *method, json_t *arguments,
                        pid_t thread, double timeout, struct prb_error *err) PRB_MUST_CHECK;
/* Whether the request that this thread handles was cancelled, or the session has left the
 * target. */
bool prb_dap_is_cancelled(void *session);
/* The target goes on (running) or a request to do so failed: what was said of it is void. */
void prb_dap_target_resumed(struct prb_dap_session *session);
/* The thread of a frame or value, remembered and found; 0: not known. */
void prb_dap_session_set_thread(struct prb_dap_session *session, enum prb_dap_handle kind,
                                json_int_t id, pid_t thread);
pid_t prb_dap_session_thread(struct prb_dap_session *session, enum prb_dap_handle kind,
                             json_int_t id);
/* End the session once the response is out; the reader returns. */
void prb_dap_session_leave(struct prb_dap_session *session);

struct prb_dap_pending {
    struct prb_dap_pending *next;
    json_t *message;
    size_t cost; /* bytes */
    json_int_t seq;
    unsigned worker;
    bool cancelled;
    bool told;      /* to take long: progress.c */
    double since;   /* s, monotonic: when it began to run */
    bool holds;     /* the target's events wait for its response */
    json_t *events; /* of ours, that follow it */
};

#endif
