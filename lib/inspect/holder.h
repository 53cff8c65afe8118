/* A thread that holds what another waits for, as text. */
#ifndef PRB_INSPECT_HOLDER_H
#define PRB_INSPECT_HOLDER_H

#include "probing.h"

/* `thread 12 "loader" at f (train.py:3) in poll`, cut to size. */
void prb_holder_describe(const struct prb_thread *thread, char *text, size_t size);

/* Who has the lock that a thread of the stacks waits for, by number, cut to size; "": that cannot be said.  It can of an
 * RLock, and of a lock that a `with` holds (3.11+). */
void prb_lock_holder_of(struct prb_target *target, const struct prb_stacks *stacks, size_t waiter,
                        char *text, size_t size);

#endif
