/* Ways that a session ends: the client leaves, the target does. */
#ifndef PRB_DAP_ENDING_H
#define PRB_DAP_ENDING_H

#include "dap/session/session.h"

/* Give everything back: the target as before, or kept as it stands.  On the worker, or when
 * there is none any more. */
void prb_dap_ending_release(struct prb_dap_session *session);
/* A signal to the target. */
bool prb_dap_ending_signal(struct prb_dap_session *session, int signal, struct prb_error *err);

#endif
