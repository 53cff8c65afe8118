/* A listening server, and the processes that are debugged through it. */
#ifndef PRB_DAP_SERVER_H
#define PRB_DAP_SERVER_H

#include "dap/dap.h"
#include "dap/session/session.h"
#include "net/access.h"
#include "proc/ids.h"

#define PRB_DAP_SESSIONS_MAX 64
#define PRB_DAP_STRANGERS_MAX 8 /* connections without a token, beside the sessions */

/* A process that a session debugs, or that is stopped until one comes. */
struct prb_dap_debuggee {
    pid_t pid;                       /* 0: free */
    struct prb_dap_backend *backend; /* NULL: being opened */
    struct prb_dap_session *owner;   /* NULL: it waits for the next */
    unsigned in_use;                 /* calls that use the back end or its owner now */
    json_t *stopped;                 /* body of the event at which it is stopped */
    struct prb_dap_server *server;
};

struct prb_dap_server {
    struct prb_dap_host host; /* first: what sessions get */
    const struct prb_dap_listen_options *options;
    int listening;
    struct prb_address at;
    char address[PRB_ADDRESS_TEXT]; /* as clients reach it */
    struct prb_access access;
    struct prb_ids target_ids; /* as the target was when the server began; all 0: it has none */
    /* whose clients come in beside ours; ours, where the target has more rights than a user */
    uid_t target_uid;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct prb_dap_debuggee debuggees[PRB_DAP_SESSIONS_MAX];
    struct prb_dap_connection *clients; /* server.c */
    unsigned sessions, strangers;       /* connections of clients with and without a token */
    unsigned served;                    /* sessions that have ended */
    unsigned notes;                     /* printed about strangers */
    bool ending;
};

/* debuggees.c: see prb_dap_host_ops. */
bool prb_dap_debuggee_allows(struct prb_dap_host *host, pid_t pid, struct prb_error *err);
struct prb_dap_backend *prb_dap_debuggee_claim(struct prb_dap_host *host, pid_t pid,
                                               struct prb_dap_session *session,
                                               json_t **stopped_out, struct prb_error *err);
void prb_dap_debuggee_release(struct prb_dap_host *host, struct prb_dap_backend *backend,
                              json_t *stopped, bool keep);
/* Stop pid, which no session debugs yet. */
bool prb_dap_debuggee_pause(struct prb_dap_server *server, pid_t pid, struct prb_error *err);
/* Stop pid, also when a session debugs it. */
bool prb_dap_debuggee_stop(struct prb_dap_server *server, pid_t pid, struct prb_error *err);
/* Call a method without arguments of the process's back end; NULL: there is none, or no answer. */
json_t *prb_dap_debuggee_ask(struct prb_dap_server *server, pid_t pid, const char *method,
                             struct prb_error *err);
/* Let the processes run that no session debugs; true: there was one. */
bool prb_dap_debuggee_resume(struct prb_dap_server *server);

#endif
