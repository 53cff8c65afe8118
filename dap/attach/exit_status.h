/* How the target ended, as its parent, the kernel or we ourselves know it. */
#ifndef PRB_DAP_EXIT_STATUS_H
#define PRB_DAP_EXIT_STATUS_H

#include "dap/session/session.h"

/* Whether the process has ended, within wait_ms. */
bool prb_dap_has_ended(const struct prb_dap_session *session, int wait_ms);
/* The event `exited`, where the exit status is known. */
void prb_dap_exit_send(struct prb_dap_session *session);

#endif
