/* Threads that start and exit in a live target, and, on request, processes of its job that become
 * child sessions. */
#ifndef PRB_DAP_WATCH_H
#define PRB_DAP_WATCH_H

#include "dap/session/session.h"

/* The session is attached.  NULL: there is nothing to watch, or no thread can be started. */
struct prb_dap_watch *prb_dap_watch_open(struct prb_dap_session *session);
/* Check now: the target has stopped, in this thread (0: not known).  NULL is harmless, here and
 * below. */
void prb_dap_watch_now(struct prb_dap_watch *watch, long long thread);
/* The client refused to open a session for a child. */
void prb_dap_watch_refused(struct prb_dap_watch *watch, pid_t pid);
/* The target is gone. */
void prb_dap_watch_gone(struct prb_dap_watch *watch);
void prb_dap_watch_close(struct prb_dap_watch *watch);

/* ---- children.c: processes of the target's job that become child sessions ---- */

#define PRB_DAP_CHILDREN_MAX 1024
struct prb_dap_children { /* that the client knows */
    pthread_mutex_t lock;
    struct prb_dap_child {
        pid_t pid;
        int64_t started; /* as in /proc/PID/stat */
        bool born;       /* it waits, or has waited, at its birth */
    } seen[PRB_DAP_CHILDREN_MAX];
    size_t count;
};
/* Whether they are looked for. */
bool prb_dap_children_wanted(const struct prb_dap_session *session);
/* Whether the target's children become sessions of this client: it wants them and can open them. */
bool prb_dap_children_taken(const struct prb_dap_session *session);
/* Look, and announce each new process once. */
void prb_dap_children_announce(struct prb_dap_session *session, struct prb_dap_children *children);
/* A process says that it is just born: announce it unless looking has done so.  False: it is not one
 * of the target's. */
bool prb_dap_children_born(struct prb_dap_session *session, struct prb_dap_children *children,
                           pid_t pid);
/* The target runs another Python since an exec: announce it. */
void prb_dap_children_replaced(struct prb_dap_session *session);
/* The same by looking.  False: it does not. */
bool prb_dap_children_find_replaced(struct prb_dap_session *session);

#endif
