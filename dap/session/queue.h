/*
 * Requests that wait, in the order they came, and the workers that handle them: nearly everything
 * goes to the first.  The second takes a pause while the first is busy, and requests that only look
 * (PRB_DAP_LOOKS) while the first has been in code of the target for 0.3 s.
 */
#ifndef PRB_DAP_QUEUE_H
#define PRB_DAP_QUEUE_H

#include "dap/session/session.h"

/* Wait for the next request of a worker, which is running from then on; NULL: the session ends. */
struct prb_dap_pending *prb_dap_queue_next(struct prb_dap_session *session, unsigned worker);
/* It was answered; frees it. */
void prb_dap_queue_done(struct prb_dap_session *session, struct prb_dap_pending *pending);
void prb_dap_pending_free(struct prb_dap_pending *pending);
/* Whether one more of cost bytes would be too many (PRB_DAP_PENDING_MAX, PRB_DAP_PENDING_COST). */
bool prb_dap_queue_is_crowded(struct prb_dap_session *session, size_t cost);
/* Whether a request waits or is handled; the lock is held. */
bool prb_dap_queue_is_busy(const struct prb_dap_session *session);
/* To the end of the queue; takes pending.  One that ends the session cancels all before it. */
void prb_dap_queue_add(struct prb_dap_session *session, struct prb_dap_pending *pending);
/* Cancel the request of this number, if it waits or runs. */
void prb_dap_queue_cancel(struct prb_dap_session *session, json_int_t seq);
/* Cancel what runs; what waits is answered as cancelled in its turn. */
void prb_dap_queue_cancel_all(struct prb_dap_session *session);

#endif
