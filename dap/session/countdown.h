/* How long the target may stand still before others of its job give up on it: told when it
 * stops, and counted down. */
#ifndef PRB_DAP_COUNTDOWN_H
#define PRB_DAP_COUNTDOWN_H

#include "dap/session/session.h"

struct prb_dap_countdown;

/* Of the back end's answer to time_outs, the one that comes first; false: there is none. */
bool prb_dap_countdown_first(const json_t *answer, double *seconds_out, char *name, size_t size);

/* NULL: the back end knows of no time-outs, or there is no thread to be had. */
struct prb_dap_countdown *prb_dap_countdown_open(struct prb_dap_session *session);
/* It counts no more; returns when it asks the back end nothing more.  NULL is harmless, here and
 * below. */
void prb_dap_countdown_stop(struct prb_dap_countdown *countdown);
/* Once no event can come any more: who tells one may still hold it. */
void prb_dap_countdown_free(struct prb_dap_countdown *countdown);
/* The target stands, or goes on. */
void prb_dap_countdown_begin(struct prb_dap_countdown *countdown);
void prb_dap_countdown_end(struct prb_dap_countdown *countdown);

#endif
