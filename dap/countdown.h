/* How long the target may stand still before others of its job give up on it: told when it stops, and counted down. */
#ifndef PRB_DAP_COUNTDOWN_H
#define PRB_DAP_COUNTDOWN_H

#include "dap/session.h"

struct prb_dap_countdown;

/* NULL: the back end knows of no time-outs, or there is no thread to be had. */
struct prb_dap_countdown *prb_dap_countdown_open(struct prb_dap_session *session);
/* Does not return while it asks the back end. */
void prb_dap_countdown_close(struct prb_dap_countdown *countdown);
/* The target stands, or goes on; NULL is harmless. */
void prb_dap_countdown_begin(struct prb_dap_countdown *countdown);
void prb_dap_countdown_end(struct prb_dap_countdown *countdown);

#endif
