/*
 * Who refers to objects of some types, by walking what all objects of a heap hold: the answer to
 * "what keeps them".
 */
#ifndef PRB_INSPECT_REFERRERS_H
#define PRB_INSPECT_REFERRERS_H

#include "inspect/heap.h"

#define PRB_REFERRED_TYPES_MAX 16

/* Whether to go on; asked now and then. */
typedef bool prb_referrers_go_on_fn(void *context);

/*
 * For each of the types, what most of their objects are referred to by: "list in Trainer.history"
 * (the attribute that holds the one list with most of them), "Node.next", "dict", or NULL: nothing
 * that the collector knows.  types: at most PRB_REFERRED_TYPES_MAX; out: as many, in arena.
 * False: out of memory, or go_on said no (TIMEOUT).
 */
bool prb_referrers_find(const struct prb_heap_part *part, const prb_addr *types, size_t count,
                        prb_referrers_go_on_fn *go_on, void *context, struct prb_arena *arena,
                        const char **out, struct prb_error *err);

#endif
