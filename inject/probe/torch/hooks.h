/*
 * Moments of a training job for others of the probe, such as who reads watched variables.
 *
 * A function is called on the thread that trains, at the end of an outermost backward, of the
 * anchor's optimizer step, and, where there is no optimizer, of a root module's call; once more when
 * what follows the optimizer's step begins.  It must not block, call Python or raise; it may read this
 * thread's own frames.
 */
#ifndef PRB_PROBE_TORCH_HOOKS_H
#define PRB_PROBE_TORCH_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

enum prb_torch_moment {
    PRB_TORCH_BACKWARD_ENDS, /* with the GIL */
    PRB_TORCH_STEP_ENDS,   /* the anchor's optimizer.step() returns; PyTorch has released the GIL */
    PRB_TORCH_ROOT_ENDS,   /* with the GIL */
    PRB_TORCH_NEXT_BEGINS, /* after a step whose end was told as one that is followed; any thread */
};

struct prb_torch_now {
    enum prb_torch_moment moment;
    bool gil;           /* this thread has it */
    int64_t local_step; /* that ends, or in which the backward is */
    unsigned micro_step;
    unsigned arming;
    uint64_t at;         /* ns of the monotonic clock */
    uintptr_t optimizer; /* of STEP_ENDS: the object, 0: not known */
    bool followed;       /* of STEP_ENDS: NEXT_BEGINS will be told */
    bool batch;          /* of NEXT_BEGINS: the thread of the step asks for a batch */
    bool rests;          /* of NEXT_BEGINS: nothing has begun for a while; it is told again */
};

#define PRB_TORCH_LISTENERS_MAX 4
typedef void prb_torch_listener(const struct prb_torch_now *now);
/* False: there are too many.  The same function again is fine.  Any thread. */
bool prb_torch_listen(prb_torch_listener *listener);
void prb_torch_unlisten(prb_torch_listener *listener);

#endif
