/* How much memory a process has: /proc/PID/status and smaps_rollup, proc(5).  Bytes; -1: not known. */
#ifndef PRB_HOST_MEMORY_H
#define PRB_HOST_MEMORY_H

#include "proc/proc.h"

struct prb_memory_usage {
    int64_t resident;           /* RAM now: the three below it */
    int64_t anon, file, shared; /* its own; of files; of shared memory (Linux 4.5) */
    int64_t swap, peak;         /* peak: the most that was resident at a time */
    int64_t proportional,
        unique;                /* PSS and USS: shared pages divided by who has them, or left out */
    int64_t voluntary, forced; /* switches of its main thread, which stand there, too */
};

/*
 * share: proportional and unique, too.  The kernel goes through all pages for these two and holds
 * the lock of the process's maps meanwhile: 14 ms for a process with torch.  kept: a descriptor for
 * the next time (prb_proc_line), or NULL.
 */
bool prb_memory_usage_read(struct prb_proc *proc, bool share, int *kept,
                           struct prb_memory_usage *out, struct prb_error *err);

#endif
