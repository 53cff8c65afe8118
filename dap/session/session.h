/*
 * A session: one client, from its first byte to its last, and what it debugs.
 *
 * THREADS.  The reader (the caller of prb_dap_session_run), the worker (handlers), a second worker
 * for what need not wait for the first (queue.h), the writer (outbox.h),
 * the progress thread, and a thread of the back end, which reports events.  `lock` guards what
 * several of them use; it is never held while the back end is called.  Until the client is known
 * or has shown the token there is only the reader, which handles requests itself.
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

#define PRB_DAP_PENDING_MAX 4096          /* waiting requests; more are refused */
#define PRB_DAP_PENDING_COST (128u << 20) /* bytes of memory that they take */
#define PRB_DAP_STRANGER_MS 30000         /* a client must show the token within this time */
#define PRB_DAP_DELAYED_MAX 4096          /* events that wait for a response */
#define PRB_DAP_GOODBYE_MS 2000           /* for the client to receive the last messages */
#define PRB_DAP_WORKERS 2

enum prb_dap_state {
    PRB_DAP_NEW,
    PRB_DAP_INITIALIZED,
    PRB_DAP_IS_ATTACHED,
    PRB_DAP_CONFIGURED,
    PRB_DAP_ENDED
};

/* What the transport is and allows; owned by the caller of the session. */
struct prb_dap_host {
    const struct prb_dap_host_ops *ops;
    const char *token; /* that a client must show unless it is known, or NULL */
    pid_t pid;         /* the target of an `attach` that names none; 0: it must name one */
    const char *file;  /* the same: a core or snapshot */
    bool look;         /* read only, without the probe */
    /* attach may name another server by "connect", to which the session is then relayed */
    bool relays;
    bool keeps_target;   /* the target may stay stopped for the next client */
    const char *address; /* "HOST:PORT" where the server listens, or NULL (stdio, Unix socket) */
    const char *reached; /* the same as clients reach it by a tunnel; NULL: as they connected */
};
struct prb_dap_host_ops {
    /* Whether clients of this host may debug a process; NULL: any process.  PERMISSION. */
    bool (*allows)(struct prb_dap_host *host, pid_t pid, struct prb_error *err);
    /* The back end of a process, opened now or left by an earlier session.  *stopped_out: the body
     * of the event at which it is stopped, a new reference or NULL.  BUSY: another client debugs
     * it. */
    struct prb_dap_backend *(*claim)(struct prb_dap_host *host, pid_t pid,
                                     struct prb_dap_session *session, json_t **stopped_out,
                                     struct prb_error *err);
    /* An unknown client has shown the token; NULL: always admitted.  BUSY: there are too many. */
    bool (*admits)(struct prb_dap_host *host, int in, struct prb_error *err);
    /* The session leaves the back end; keep: the target stays stopped (suspendDebuggee). */
    void (*release)(struct prb_dap_host *host, struct prb_dap_backend *backend, json_t *stopped,
                    bool keep);
};

/* What the client said of itself (initialize). */
struct prb_dap_client {
    bool lines_from_0, columns_from_0, uris;
    bool progress, invalidated, memory, start_debugging, run_in_terminal, variable_type, paging;
    bool shell_args; /* its terminal may get words that the shell reads */
    /* it shows neighbouring frames that are not the program's as one row, and accepts more
     * frames than it asked for */
    bool folds;
    char name[64];
};

struct prb_dap_pending;

struct prb_dap_session {
    struct prb_dap_host *host;
    const struct prb_dap_request *const *requests; /* that it answers; ends with NULL */
    int in;
    int wake; /* eventfd that wakes the reader */
    struct prb_dap_outbox *outbox;
    struct prb_dap_wire wire;

    pthread_mutex_t lock;
    pthread_cond_t changed;               /* answers, a worker is free, leaving */
    pthread_cond_t work[PRB_DAP_WORKERS]; /* a request waits for the worker */
    /* wakes the progress thread */
    pthread_cond_t progress_wake;
    bool progress_idle; /* the progress thread waits for progress_wake alone */
    enum prb_dap_state state;
    struct prb_dap_pending *first, *last; /* that wait */
    struct prb_dap_pending *running[PRB_DAP_WORKERS];
    size_t pending, cost; /* number of waiting requests, and their bytes */
    bool started;         /* the other threads run; only the reader uses it */
    pthread_t workers[PRB_DAP_WORKERS];
    pthread_t progress;
    json_t *delayed; /* events of the target, until the running request is answered */
    json_t *stopped; /* body of the last `stopped` while the target is stopped, or NULL */
    /* s, when one thread began to step while the others are held; 0: none does */
    double alone_since;
    double alone_looked; /* s, when we last looked for held threads */
    bool alone_said;     /* the client knows who is held */
    bool stop_unsent;    /* that event is not sent yet: before configurationDone */
    bool leaving;        /* no request is handled any more */
    bool gone;           /* the target has ended */
    bool end_claimed;    /* somebody sends `terminated`, who does it alone */
    bool takes_children; /* they wait at their birth: births.h */
    bool replaced; /* the target has started another Python, which is a child session by now */
    bool found_replaced;               /* that was found by looking */
    struct prb_dap_thread_map threads; /* of frames and values */
    /* of the client to our requests, by seq as a string; an integer: that of startDebugging for this
     * process is to come */
    json_t *answers;

    /* Used by the worker only. */
    struct prb_dap_client client;
    bool known, authorized; /* known: it needs no token; authorized: that, or it has shown it */
    unsigned refused;       /* wrong tokens */
    struct prb_dap_backend *backend; /* changed with the lock: the second worker reads it */
    pid_t pid;                       /* of the target; 0: a file */
    int pidfd;                       /* of it; -1: none */
    char *title;                     /* of the target, for people */
    json_t *settings;                /* the arguments of attach */
    json_t *facts;                   /* the back end's answer to attach */
    json_t *ascii_sources; /* with the lock; {path: true} of sources in ASCII: client/columns.c */
    json_t *breakpoint_sources; /* array of the sources in which the client has set breakpoints */
    bool debugpy;               /* the client speaks the stock Python debugger's dialect */
    bool keep;                  /* the target stays stopped when the session leaves */
    double evaluate_timeout;    /* s */
    struct prb_dap_paths paths;
    json_t *initialize; /* arguments of initialize, where the host relays */
    /* to the server that the session is relayed to; set once, with the lock (attach/relay.h) */
    struct prb_dap_relay *relay;
    struct prb_dap_countdown *countdown; /* both: other threads read it with the lock */
    struct prb_dap_watch *watch;
    struct prb_dap_program *program; /* that launch started */
    bool leave_program;              /* do not end it with the session */
};

/* Serve one client until it leaves or the target ends; the target is then as before.  in and out
 * are not closed.  known: the client needs no token. */
bool prb_dap_session_run(struct prb_dap_host *host, int in, int out, bool known,
                         struct prb_error *err);

/* ---- for the session's own parts ---- */

/* reader.c: until the client leaves.  False: it sent no token, or not a message. */
bool prb_dap_session_read(struct prb_dap_session *session, struct prb_error *err);
/* threads.c: the client is known or has shown the token; start all threads.  False: the session
 * ends. */
bool prb_dap_session_start(struct prb_dap_session *session, struct prb_error *err);
/* With the lock: wait for a condition of the session; for at most so long, or 0: until it is
 * signalled. */
void prb_dap_session_wait(struct prb_dap_session *session, pthread_cond_t *condition,
                          double seconds);
/* Wait until they have ended, which prb_dap_session_leave makes them do. */
void prb_dap_session_join(struct prb_dap_session *session);
/* Whether the target is a process with the probe, which can be stopped and ended. */
bool prb_dap_session_is_live(struct prb_dap_session *session);

/* target_events.c: an event of the target, from any thread; body borrowed. */
void prb_dap_target_event(void *session, const char *event, json_t *body);
/* True for the first caller alone: it sends `terminated`. */
bool prb_dap_end_claim(struct prb_dap_session *session);
/* It does not after all. */
void prb_dap_end_unclaim(struct prb_dap_session *session);
/* The process of the target has ended, from any thread. */
void prb_dap_target_ended(struct prb_dap_session *session);
/* An event of ours, from any thread, sent at once.  Takes body. */
void prb_dap_send(struct prb_dap_session *session, const char *event, json_t *body);
/* As prb_dap_send, also before the response to the request that runs. */
void prb_dap_send_now(struct prb_dap_session *session, const char *event, json_t *body);
/* The same; the caller has locked session->lock. */
void prb_dap_send_locked(struct prb_dap_session *session, const char *event, json_t *body);
/* One line in the client's console; important: as a message that pops up. */
void prb_dap_say(struct prb_dap_session *session, bool important, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A request of ours to the client.  wait_s: how long to wait for the answer; 0: do not wait.
 * *body_out: a new reference. */
bool prb_dap_request_client(struct prb_dap_session *session, const char *command, json_t *arguments,
                            double wait_s, json_t **body_out, struct prb_error *err);
/* Ask the client to open a session for a child; a refusal lets the child go.  Takes arguments. */
void prb_dap_start_debugging(struct prb_dap_session *session, json_t *arguments, pid_t pid);
/* The one of that command, or NULL (dispatch.c). */
const struct prb_dap_request *prb_dap_request_find(const struct prb_dap_session *session,
                                                   const char *command);
/* Handle one message of the client, on its worker. */
void prb_dap_dispatch(struct prb_dap_session *session, struct prb_dap_pending *pending);
/* The response of a request was queued: send the events that waited for it. */
void prb_dap_session_flush(struct prb_dap_session *session, struct prb_dap_pending *pending);
/* progress.c: the thread that reports slow requests, until the session leaves. */
void *prb_dap_progress_run(void *session);
/* A request is done; the lock is held. */
void prb_dap_progress_end(struct prb_dap_session *session, const struct prb_dap_pending *pending);
/* requests/breakpoints.c: remove all breakpoints, before the next client comes. */
void prb_dap_breakpoints_clear(struct prb_dap_session *session);
/* prb_dap_ask with a deadline (s; 0: none). */
json_t *prb_dap_ask_for(struct prb_dap_session *session, const char *method, json_t *arguments,
                        pid_t thread, double timeout, struct prb_error *err) PRB_MUST_CHECK;
/* Whether the request that this thread handles was cancelled, or the session has left the
 * target. */
bool prb_dap_is_cancelled(void *session);
/* The target runs again, or a request to do so failed: forget the stop and its handles. */
void prb_dap_target_resumed(struct prb_dap_session *session);
/* Store and find the thread of a frame or value; 0: not known. */
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
    unsigned when; /* of its request */
    bool cancelled;
    bool announced; /* as slow: progress.c */
    double since;   /* s, monotonic: when its handler started */
    bool delays;    /* events of the target wait for its response */
    json_t *events; /* of ours, sent after its response */
};

#endif
