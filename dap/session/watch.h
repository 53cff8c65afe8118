/* What comes and goes in a live target and its job: threads, and processes that become child
 * sessions on request. */
#ifndef PRB_DAP_WATCH_H
#define PRB_DAP_WATCH_H

#include "dap/session/session.h"

/* NULL: nothing to watch, or no thread to be had.  The session is attached. */
struct prb_dap_watch *prb_dap_watch_open(struct prb_dap_session *session);
/* The target has stopped, by this thread (0: not known): look now.  NULL is harmless, here and
 * below. */
void prb_dap_watch_hurry(struct prb_dap_watch *watch, long long thread);
void prb_dap_watch_close(struct prb_dap_watch *watch);

/* children.c: tell the client of processes that are new, once each; of those in seen nothing is
 * told. */
#define PRB_DAP_CHILDREN_MAX 256
struct prb_dap_children {
    pid_t seen[PRB_DAP_CHILDREN_MAX];
    size_t count;
};
bool prb_dap_children_wanted(const struct prb_dap_session *session);
void prb_dap_children_look(struct prb_dap_session *session, struct prb_dap_children *children);

#endif
