/*
 * Stopping several threads together, for those who ask for it (backtrace --stop).  All are
 * interrupted before any is awaited (DESIGN 4.3); what is stopped already stays so, and pending
 * signals are passed on.
 */
#ifndef PRB_NATIVE_FREEZE_H
#define PRB_NATIVE_FREEZE_H

#include "proc/proc.h"

struct prb_freeze;

/*
 * Stop the given threads of a live process.  Those that end meanwhile, or do not stop within 50 ms
 * (an uninterruptible wait), are left out; *stopped_out counts the others. Errors: PERMISSION, BUSY
 * (another tracer holds one of them).
 */
struct prb_freeze *prb_freeze_new(struct prb_proc *proc, const pid_t *tids, size_t count,
                                  size_t *stopped_out, struct prb_error *err);
/* Let them go; returns for how many seconds they stood.  freeze may be NULL. */
double prb_freeze_free(struct prb_freeze *freeze);
static inline void prb_freeze_end(struct prb_freeze *freeze) { prb_freeze_free(freeze); }
PRB_DEFINE_AUTO_PTR(prb_freeze, struct prb_freeze, prb_freeze_end)

#endif
