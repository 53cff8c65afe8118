/* One request of a client and the wait for its end. */
#ifndef PRB_INJECT_CONTROL_ASK_H
#define PRB_INJECT_CONTROL_ASK_H

#include "base/error.h"
#include "inject/control.h"
#include "inject/probe/message.h"

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
