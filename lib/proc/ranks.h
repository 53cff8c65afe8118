/* Which rank of a job a process is, by what its launcher put into its environment.  libc only: the
 * probe has it, too. */
#ifndef PRB_PROC_RANKS_H
#define PRB_PROC_RANKS_H

#include "base/buf.h"

struct prb_ranks {
    int rank, local_rank, world_size; /* -1: not set */
};
/* environ: the text of /proc/PID/environ. */
void prb_ranks_of(const struct prb_buf *environ, struct prb_ranks *out);

#endif
