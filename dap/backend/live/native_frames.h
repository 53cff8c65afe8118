/*
 * Native frames between the Python frames that the agent in the target reports: the library's
 * merged stack of a thread is laid over the agent's frames.  Where the two do not agree frame by
 * frame, the agent's frames stand alone: a wrong place is worse than none.
 *
 * Frames of the interpreter itself are left out, and so are frames that the probe added between
 * the program's frames while a thread is parked.
 */
#ifndef PRB_DAP_NATIVE_FRAMES_H
#define PRB_DAP_NATIVE_FRAMES_H

#include <jansson.h>

#include "probing.h"

struct prb_dap_native;

/* Reads a live process from outside.  A running thread is stopped while it is copied (0.2 ms);
 * nothing else is done to the process. */
struct prb_dap_native *prb_dap_native_open(pid_t pid, struct prb_error *err) PRB_MUST_CHECK;
void prb_dap_native_close(struct prb_dap_native *native);

/*
 * Put native frames into stack, the agent's answer to `stack` for all frames of a thread
 * ({stackFrames, totalFrames}, methods.def).  They have the `presentationHint` "subtle", ids from
 * PRB_DAP_NATIVE_ID on and no scopes; totalFrames counts them.  A thread for which the agent has
 * no frames gets its native ones.  True: some were added.  From any thread.
 */
bool prb_dap_native_merge(struct prb_dap_native *native, pid_t thread, json_t *stack);
/*
 * Where threads are in native code: an array of {id, name, python, native}, where native is the
 * function ("ncclGroupEnd"); all: also threads without Python.  NULL: it cannot be read.  From any
 * thread.
 */
json_t *prb_dap_native_places(struct prb_dap_native *native, bool all);
/* Add them to threads, the agent's answer to `threads` (methods.def): `native` for each thread that
 * is not parked, and, with all, the threads without Python after the others. */
void prb_dap_native_add_places(const json_t *places, json_t *threads, bool all);

#endif
