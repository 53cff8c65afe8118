/* How a session leaves its target. */
#ifndef PRB_DAP_ENDING_H
#define PRB_DAP_ENDING_H

#include "dap/session/session.h"

/* Leave the target as it was before, or stopped (session->keep).  On the worker, or when there is
 * no worker any more. */
void prb_dap_ending_release(struct prb_dap_session *session);
/* A signal to the target. */
bool prb_dap_ending_signal(struct prb_dap_session *session, int signal, struct prb_error *err);

#endif
