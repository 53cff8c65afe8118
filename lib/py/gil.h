/* Who holds the GIL now: a few words of the runtime, and no stacks. */
#ifndef PRB_PY_GIL_H
#define PRB_PY_GIL_H

#include "py/py.h"

/* A thread by what its thread state says. */
struct prb_gil_holder {
    uint64_t thread_id; /* pthread */
    uint64_t native_id; /* 3.11+, in the target's pid namespace; 0 before */
};

/* So many interpreters may have a GIL of their own. */
#define PRB_GILS_MAX 64

/* False: it is free-threaded, or it is not known where its GIL lies. */
bool prb_gil_is_known(const struct prb_py *py);
/*
 * The holder of each GIL that is held.  Each is proven: nobody else took the GIL while its ids were
 * read.  Errors: FAULT, GONE; BUSY: others took it each time; CORRUPT: more GILs than that.
 */
bool prb_gil_holders(struct prb_py *py, struct prb_gil_holder out[PRB_GILS_MAX], size_t *count_out,
                     struct prb_error *err);

#endif
