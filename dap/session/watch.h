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
void prb_dap_watch_close(struct prb_dap_watch *watch);

/* children.c: announce each new process to the client once, but none of those in seen. */
#define PRB_DAP_CHILDREN_MAX 256
struct prb_dap_children {
    pid_t seen[PRB_DAP_CHILDREN_MAX];
    size_t count;
};
bool prb_dap_children_wanted(const struct prb_dap_session *session);
void prb_dap_children_announce(struct prb_dap_session *session, struct prb_dap_children *children);

#endif
