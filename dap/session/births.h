/*
 * Children at their birth.  While a session takes children (`subProcess`), each child that its
 * target makes connects to a socket here and waits (inject/probe/debug/birth.h).  The client is
 * asked to open a session for it.  The child goes on when that is configured, when its time is
 * over, or when this session ends, which closes the connection.
 */
#ifndef PRB_DAP_BIRTHS_H
#define PRB_DAP_BIRTHS_H

#include "dap/session/watch.h"

/* The target is attached.  NULL: the client takes no children, or no socket can be made; then
 * children are only found by looking. */
struct prb_dap_births *prb_dap_births_open(struct prb_dap_session *session,
                                           struct prb_dap_children *children);
/* The target is gone, from any thread: who waits goes on.  NULL is harmless, here and below. */
void prb_dap_births_gone(struct prb_dap_births *births);
/* The client opens no session for this child, which goes on. */
void prb_dap_births_refused(struct prb_dap_births *births, pid_t pid);
void prb_dap_births_close(struct prb_dap_births *births);

#endif
