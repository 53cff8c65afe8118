/*
 * What goes to the client: a bounded queue and the thread that writes it, so that neither a handler
 * nor the target's events wait for a client that reads slowly.
 */
#ifndef PRB_DAP_OUTBOX_H
#define PRB_DAP_OUTBOX_H

#include <jansson.h>

#include "probing.h"

/* Bytes that wait: above SOFT, output of the target is dropped and counted; above HARD, the client
 * counts as lost. */
#define PRB_DAP_OUTBOX_SOFT (2u << 20)
#define PRB_DAP_OUTBOX_HARD (64u << 20)
#define PRB_DAP_SEND_MS 60000 /* a client that reads nothing for this time is lost */

struct prb_dap_outbox;

/* fd is not closed.  lost is called once, on the writing thread: the client no longer reads.  There
 * is no thread yet: a message is written when it is queued, and a client that does not take it at
 * once is lost (lost is not called). */
struct prb_dap_outbox *prb_dap_outbox_open(int fd, void (*lost)(void *context), void *context,
                                           struct prb_error *err) PRB_MUST_CHECK;
/* Start the thread that writes. */
bool prb_dap_outbox_start(struct prb_dap_outbox *outbox, struct prb_error *err);
/* Write what waits, for at most wait_ms, and end the thread. */
void prb_dap_outbox_close(struct prb_dap_outbox *outbox, int wait_ms);

/* Queue a message and return its seq.  Takes message.  droppable: it may be dropped when the client
 * is slow; before the next message that is sent, a note says how many were dropped.  From any
 * thread; never waits. */
json_int_t prb_dap_outbox_put(struct prb_dap_outbox *outbox, json_t *message, bool droppable);
/* Wait until no more than PRB_DAP_OUTBOX_SOFT bytes wait; false: the client is lost. */
bool prb_dap_outbox_drain(struct prb_dap_outbox *outbox);

#endif
