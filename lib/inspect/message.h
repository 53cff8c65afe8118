/* The text of an exception (message.c). */
#ifndef PRB_INSPECT_MESSAGE_H
#define PRB_INSPECT_MESSAGE_H

#include "base/buf.h"
#include "py/object/object.h"

/* Appends str() of the exception; nothing when it has none or cannot be read. */
void prb_exception_message(struct prb_objects *objects, prb_addr exception, struct prb_buf *out);

#endif
