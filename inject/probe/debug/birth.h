/*
 * Children at their birth.  While a session takes children, a child of os.fork() connects to the
 * socket of the session's server before it runs a line of its program.  It waits there until a
 * session of its own is configured, and no longer than the wait of its parent's session.  It goes
 * on at once when nobody listens, when the server closes the connection, and when a signal comes.
 * An exec'd Python does the same in its start-up hook (python/_probing_hook.py).
 */
#ifndef PRB_PROBE_DEBUG_BIRTH_H
#define PRB_PROBE_DEBUG_BIRTH_H

#include "inject/probe/python/api.h"

/* Methods of probe.functions (debug.h). */
struct prb_py *prb_debug_take_children(struct prb_py *self, struct prb_py *args);
struct prb_py *prb_debug_born(struct prb_py *self, struct prb_py *args);
struct prb_py *prb_debug_set_variable(struct prb_py *self, struct prb_py *args);
struct prb_py *prb_debug_child_waits(struct prb_py *self, struct prb_py *args);
struct prb_py *prb_debug_child_goes(struct prb_py *self, struct prb_py *args);

/* In a child after fork(2). */
void prb_debug_birth_forked(void);

#endif
