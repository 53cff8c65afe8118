/*
 * Coroutines and generators that are suspended: where each was suspended, and what it awaits.
 */
#ifndef PRB_PY_COROUTINE_H
#define PRB_PY_COROUTINE_H

#include "py/object/object.h"
#include "py/stack.h"

#define PRB_AWAITS_MAX 100000 /* of one chain */

enum prb_coroutine_state {
    PRB_COROUTINE_CREATED, /* has not begun */
    PRB_COROUTINE_SUSPENDED,
    PRB_COROUTINE_EXECUTING, /* on the stack of a thread */
    PRB_COROUTINE_DONE,
};

/* A chain of awaits: the coroutine, what it awaits, and so on. */
struct prb_awaits {
    struct prb_raw_frame *frames; /* outermost first: the coroutine's own */
    size_t count, cap;
    enum prb_coroutine_state state; /* of the outermost */
    prb_addr
        end; /* what the innermost awaits that is not a coroutine: a future as a rule; 0: nothing */
    bool broken; /* the chain ends in error; the frames before are good */
    struct prb_error error;
};
void prb_awaits_deinit(struct prb_awaits *awaits);
PRB_DEFINE_AUTO(prb_awaits, struct prb_awaits, prb_awaits_deinit)

/*
 * Follow a coroutine, generator or asynchronous generator, and the objects that wrap one
 * (coroutine_wrapper, async_generator_asend, …).  Replaces the contents of out.  Of one that is
 * running, only its own frame is given: the rest is on its thread's stack. *left: how many frames
 * may be read, less those that were; the chain is broken where it comes to 0.  Sources: _PyGen_yf
 * of Objects/genobject.c, cr_await of the manual.
 */
void prb_awaits_follow(struct prb_objects *objects, prb_addr coroutine, size_t *left,
                       struct prb_awaits *out);
/* Whether two readings of a chain are the same. */
bool prb_awaits_equal(const struct prb_awaits *a, const struct prb_awaits *b);
/* The code that a coroutine runs, also of one that is done, where the version still has it; 0:
 * unknown. */
prb_addr prb_coroutine_code(struct prb_objects *objects, prb_addr coroutine);

#endif
