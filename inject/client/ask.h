/* What clients of the probe share: a message sent; one request and the wait for its end. */
#ifndef PRB_INJECT_ASK_H
#define PRB_INJECT_ASK_H

#include "base/error.h"
#include "inject/control.h"
#include "inject/probe/server/message.h"

/* A whole message, to a socket that may not take it at once.  True also when the probe hung up:
 * what it said before that is read next.  Errors: TIMEOUT when it takes nothing for 10 s. */
bool prb_control_send(int to, const struct prb_buf *message, struct prb_error *err);

struct prb_ask {
    int wait_ms;                                                 /* for the end; 0: for ever */
    bool (*part)(void *context, const struct prb_message *part); /* false: cancel */
    bool (*cancelled)(void *context);
    void *context;
    bool stop; /* part said so */
};

/* end_out borrows until the next request. */
bool prb_control_ask(struct prb_control *control, enum prb_message_type type,
                     const struct prb_buf *fields, struct prb_ask *ask, struct prb_message *end_out,
                     struct prb_error *err);

#endif
