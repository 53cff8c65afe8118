/* Processes that are ranks, for whoever wants more of them than their numbers. */
#ifndef PRB_INSPECT_RANKS_H
#define PRB_INSPECT_RANKS_H

#include "probing.h"

/* environment: as of prb_process_environment, for this call only. */
typedef void prb_rank_fn(void *context, const struct prb_process *rank, const char *environment,
                         size_t len);

/* prb_process_list, which tells each process that has a rank as it finds it: its environment was
 * read for that, and costs as much again later.  It does not look for probes: has_probe is false. */
struct prb_process_list *prb_process_list_ranks(prb_rank_fn *tell, void *context,
                                                struct prb_error *err) PRB_MUST_CHECK;

#endif
