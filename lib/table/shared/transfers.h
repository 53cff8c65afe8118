/* What a rank of a job sent and another received: point to point. */
#ifndef PRB_TABLE_TRANSFERS_H
#define PRB_TABLE_TRANSFERS_H

#include "table/shared/collectives.h"

struct prb_transfer {
    const struct prb_collective *send, *receive; /* in the job's transfers */
};

/*
 * Which send each receipt belongs to.  No label says who is at the other end, so jobs of two ranks alone have any; and a
 * receipt does not end before its send begins.  Freed by the caller.  False: NOMEM.
 */
bool prb_job_transfers(const struct prb_job *job, struct prb_transfer **out, size_t *count_out,
                       struct prb_error *err);

#endif
