/*
 * Collectives of one operation that run side by side, as the reductions of DistributedDataParallel do
 * over gloo: its threads take them in order, but the one that loses the CPU then begins later than
 * the next, and is counted behind it.  So a rank's part may stand beside another collective's of the
 * other ranks, and as nobody ends before all have begun, the parts say so: they do not overlap.
 */
#ifndef PRB_TABLE_COLLECTIVE_ORDER_H
#define PRB_TABLE_COLLECTIVE_ORDER_H

#include "table/shared/collectives.h"

/*
 * Put parts that stand beside a wrong one where they belong: of a few neighbours, by the order of
 * their ends, which are nearly the same in all ranks.  What fits nowhere is taken out; *taken_out: how
 * many.  Items are sorted, and stay so.  False: NOMEM.
 */
bool prb_job_put_in_order(struct prb_job *job, size_t *taken_out, struct prb_error *err);

#endif
