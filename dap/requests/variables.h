/* Values that the client shows may have changed. */
#ifndef PRB_DAP_VARIABLES_H
#define PRB_DAP_VARIABLES_H

#include "dap/session/session.h"

/* The event `invalidated`, for clients that take it. */
void prb_dap_invalidate(struct prb_dap_session *session);

#endif
