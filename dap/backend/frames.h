/* Stacks of the library (probing.h) as the back ends give them to the session: shared by both. */
#ifndef PRB_DAP_FRAMES_H
#define PRB_DAP_FRAMES_H

#include <jansson.h>
#include <string.h>

#include "probing.h"

/* Ids of native frames: these and above; ids of Python frames are below. */
#define PRB_DAP_NATIVE_ID (1 << 30)

/* What follows the last slash; NULL: "". */
static inline const char *prb_dap_base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

/* A string for JSON; NULL: null.  If it is not UTF-8, each byte above 127 becomes "?". */
json_t *prb_dap_text(const char *text);
/* A frame of any kind, as the method `stack` gives it. */
json_t *prb_dap_frame_json(const struct prb_frame *frame, json_int_t id);
/* Cut the stack of one thread to {startFrame, levels}; totalFrames stays. */
void prb_dap_stack_page(json_t *stack, json_int_t start, json_int_t levels);
/*
 * The native function that a thread is in; NULL: it runs Python, or nothing is known.  It is the
 * function that was called, not those that it calls: the outermost function of the innermost
 * library that is not the C library; of the interpreter, the innermost.
 */
const char *prb_dap_native_place(const struct prb_thread *thread);

#endif
