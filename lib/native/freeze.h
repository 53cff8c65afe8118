/*
 * Stopping several threads together, for those who ask for it (backtrace --stop, debug
 * --snapshot).  All are interrupted before any is awaited (DESIGN 4.3); what is stopped already
 * stays so, and pending signals are passed on.
 */
#ifndef PRB_NATIVE_FREEZE_H
#define PRB_NATIVE_FREEZE_H

#include "proc/proc.h"

/*
 * Stop the given threads of a live process, do the work, and let them go; false: that or the
 * work failed. Those that end meanwhile are left out; those that do not stop within 3 ms are not
 * waited for: they stand in the kernel (an uninterruptible wait, no processor free).  work runs
 * on a thread of its own, before all others of this process.  *stood_out: for how many seconds
 * they stood at the most.  Errors: PERMISSION, BUSY (another tracer holds one of them).
 */
bool prb_freeze_run(struct prb_proc *proc, const pid_t *tids, size_t count,
                    bool (*work)(void *context, struct prb_error *err), void *context,
                    double *stood_out, struct prb_error *err);

#endif
