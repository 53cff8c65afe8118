/* What clients of the probe share: sending a message; one request and the wait for its end. */
#ifndef PRB_INJECT_ASK_H
#define PRB_INJECT_ASK_H

#include "base/error.h"
#include "inject/control.h"
#include "inject/probe/server/message.h"

/* Send a whole message.  True also when the probe hung up: what it sent before that is read next.
 * Errors: TIMEOUT when the probe accepts nothing for 10 s. */
bool prb_control_send(int to, const struct prb_buf *message, struct prb_error *err);

struct prb_ask {
    int wait_ms;                                                 /* for the end; 0: for ever */
    bool (*part)(void *context, const struct prb_message *part); /* false: cancel */
    bool (*cancelled)(void *context);
    void *context;
    bool stop; /* part returned false */
};

/* end_out is borrowed until the next request. */
bool prb_control_ask(struct prb_control *control, enum prb_message_type type,
                     const struct prb_buf *fields, struct prb_ask *ask, struct prb_message *end_out,
                     struct prb_error *err);

#endif
