/*
 * Native frames for a debugger whose agent sees Python only: the decoder's merged stack of a thread
 * is laid over the agent's frames.  Where the two do not agree frame by frame, the agent's stand
 * alone: a wrong place is worse than none.
 *
 * Frames of the interpreter's own machinery are left out, and so is what the probe itself added
 * between the program's frames while a thread is parked.
 */
#ifndef PRB_DAP_NATIVE_FRAMES_H
#define PRB_DAP_NATIVE_FRAMES_H

#include <jansson.h>

#include "probing.h"

/* Native frames have these ids and those above; the agent's are below.  They have no scopes. */
#define PRB_DAP_NATIVE_ID (1 << 30)

struct prb_dap_native;

/* Reads a live process from outside; does nothing to it but stop running threads for their copy
 * (0.2 ms). */
struct prb_dap_native *prb_dap_native_open(pid_t pid, struct prb_error *err) PRB_MUST_CHECK;
void prb_dap_native_close(struct prb_dap_native *native);

/*
 * stack: the agent's answer to `stack` for all frames of a thread ({stackFrames, totalFrames},
 * methods.def); native frames come in between, with `presentationHint` "subtle", and totalFrames
 * follows.  A thread that the agent has no frames of gets its native ones.  True: some came in.
 * From any thread.
 */
bool prb_dap_native_merge(struct prb_dap_native *native, pid_t thread, json_t *stack);
/*
 * Where threads are in native code, a list of {id, name, python, native: the function
 * ("ncclGroupEnd")}, all: also of those without Python; NULL: it cannot be seen.  Then
 * `threads`, the agent's answer (methods.def), gets `native` for those that are not parked, and,
 * with all, the threads without Python behind the others.  From any thread.
 */
json_t *prb_dap_native_places(struct prb_dap_native *native, bool all);
void prb_dap_native_tell(const json_t *places, json_t *threads, bool all);

/* The stack of one thread cut to {startFrame, levels}; totalFrames stays. */
void prb_dap_stack_page(json_t *stack, json_int_t start, json_int_t levels);

/* ---- shared with the look back end ---- */

/* A frame of any kind as `stack` gives it; own: whether Python code is the user's. */
json_t *prb_dap_frame_json(const struct prb_frame *frame, json_int_t id);
/* The native function that a thread is in, or NULL: it runs Python, or nothing is known.  What
 * was called, and not what that calls: the outermost function of the innermost library that is
 * not the C library; of the interpreter the innermost. */
const char *prb_dap_native_place(const struct prb_thread *thread);
/* A string for JSON; one that is not UTF-8 with "?" for each of its bytes above 127; NULL: null. */
json_t *prb_dap_text(const char *text);

#endif
