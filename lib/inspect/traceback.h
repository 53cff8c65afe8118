/* The traceback of an exception: the frames that it left, as objects have them. */
#ifndef PRB_INSPECT_TRACEBACK_H
#define PRB_INSPECT_TRACEBACK_H

#include "py/object/object.h"
#include "py/stack.h"

#define PRB_TRACEBACK_MAX 4096 /* frames of one exception */

struct prb_traceback_entry {
    prb_addr object; /* of the frame */
    /* frame struct, code and instruction, where the exception came through */
    struct prb_raw_frame raw;
    int line; /* tb_lineno; as of 3.12 it may be -1: the code's position gives it */
};
typedef bool prb_traceback_fn(void *context, const struct prb_traceback_entry *entry);

/*
 * Each entry, outermost first, until each says false or one cannot be parsed.  A frame that was left
 * belongs to its object, with its locals; one that still runs is the chain's.
 * Source: Objects/frameobject.c (PyFrameObject), Include/cpython/traceback.h.
 */
void prb_traceback_each(struct prb_objects *objects, prb_addr exception, prb_traceback_fn *each,
                        void *context);

#endif
