/*
 * A thread for work that may hang.  It is used again for the next piece of work: making one costs
 * more than a stop.
 */
#ifndef PRB_NATIVE_STOPPER_H
#define PRB_NATIVE_STOPPER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct prb_stopper;

/* Made, with its thread, when first needed: *stopper NULL.  Run work there and wait for its end,
 * wait_ns at most: then it is cancelled, where it lets itself be (pthread_setcancelstate(3), it
 * begins without), and its end is waited for. Errors: TIMEOUT (it was cancelled; says nothing yet),
 * NOMEM. */
bool prb_stopper_run(struct prb_stopper **stopper, void (*work)(void *context), void *context,
                     int64_t wait_ns, struct prb_error *err);
/* Work that is under way is waited for. */
void prb_stopper_free(struct prb_stopper *stopper);

#endif
