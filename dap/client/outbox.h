/*
 * What goes to the client: a bounded queue and the thread that writes it, so that neither a handler
 * nor the target's events ever wait for a client that reads slowly.
 */
#ifndef PRB_DAP_OUTBOX_H
#define PRB_DAP_OUTBOX_H

#include <jansson.h>

#include "probing.h"

#define PRB_DAP_OUTBOX_SOFT                                                                        \
    (2u << 20) /* bytes that wait; above, output of the target is dropped and counted */
#define PRB_DAP_OUTBOX_HARD (64u << 20) /* bytes that wait; above, the client is taken for lost */
#define PRB_DAP_SEND_MS 60000           /* a client that takes nothing for so long is lost */

struct prb_dap_outbox;

/* fd stays the caller's.  lost is told once, on the thread that writes: the client reads no
 * more.  There is no thread yet: a message is written when it is queued, and a client that does
 * not take it at once is lost (without a word). */
struct prb_dap_outbox *prb_dap_outbox_open(int fd, void (*lost)(void *context), void *context,
                                           struct prb_error *err) PRB_MUST_CHECK;
/* With a thread that writes, from here on. */
bool prb_dap_outbox_start(struct prb_dap_outbox *outbox, struct prb_error *err);
/* Writes what waits, for wait_ms at the most, and ends the thread. */
void prb_dap_outbox_close(struct prb_dap_outbox *outbox, int wait_ms);

/* Queue a message, which gets its seq (returned).  Takes it.  droppable: may be left out when
 * the client is slow; the next message that is not then follows a note of how many were.  From
 * any thread; never waits. */
json_int_t prb_dap_outbox_put(struct prb_dap_outbox *outbox, json_t *message, bool droppable);
/* Wait until the client has taken what was queued but for the soft bound; false: it is lost. */
bool prb_dap_outbox_drain(struct prb_dap_outbox *outbox);

#endif
