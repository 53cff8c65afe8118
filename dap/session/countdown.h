/* How long the target may stay stopped before other ranks of its job time out: reported when it
 * stops, and counted down. */
#ifndef PRB_DAP_COUNTDOWN_H
#define PRB_DAP_COUNTDOWN_H

#include "dap/session/session.h"

struct prb_dap_countdown;

/* The time-out that comes first in the back end's answer to time_outs; false: there is none. */
bool prb_dap_countdown_first(const json_t *answer, double *seconds_out, char *name, size_t size);

/* NULL: the back end does not know time-outs, or no thread can be started. */
struct prb_dap_countdown *prb_dap_countdown_open(struct prb_dap_session *session);
/* Stop counting; returns when it no longer asks the back end.  NULL is harmless, here and below. */
void prb_dap_countdown_stop(struct prb_dap_countdown *countdown);
/* Only when no event can come any more: target_events.c may still use it. */
void prb_dap_countdown_free(struct prb_dap_countdown *countdown);
/* The target has stopped, or runs again. */
void prb_dap_countdown_begin(struct prb_dap_countdown *countdown);
void prb_dap_countdown_end(struct prb_dap_countdown *countdown);

#endif
