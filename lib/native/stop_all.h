/*
 * Stopping several threads together.  All are interrupted before any is awaited; one that was
 * stopped before stays so, a pending signal is passed on, and a thread that waits in a system call
 * goes on with it afterwards.  Relies on ptrace(2): PTRACE_SEIZE, PTRACE_INTERRUPT.
 */
#ifndef PRB_NATIVE_STOP_ALL_H
#define PRB_NATIVE_STOP_ALL_H

#include "base/cleanup.h"
#include "proc/proc.h"

struct prb_stopped_thread {
    pid_t tid;
    bool seized, stopped;
    int signal; /* to pass on when it continues; 0: none */
};

struct prb_stopped {
    struct prb_stopped_thread *items;
    size_t count, cap;
};

/* Stop the threads of a process that this one may trace, as far as they stop in time.  The calling
 * thread is the tracer: its end lets them go, too.  Never fails: what runs on is read as it runs. */
void prb_stop_process(pid_t pid, struct prb_stopped *out);
void prb_stopped_deinit(struct prb_stopped *stopped);
PRB_DEFINE_AUTO(prb_stopped, struct prb_stopped, prb_stopped_deinit)

/*
 * Stop the given threads of a live process, do the work, and let them go; false: that or the
 * work failed.  Those that end meanwhile are left out; those that do not stop within 3 ms are not
 * waited for: they stand in the kernel (an uninterruptible wait, or no CPU for them).  work runs on
 * a thread of its own, before all others of this process where that is allowed.  *stopped_out: for
 * how many seconds they were stopped, at most.  Errors: PERMISSION, BUSY (another tracer has one).
 */
bool prb_stop_threads(struct prb_proc *proc, const pid_t *tids, size_t count,
                      bool (*work)(void *context, struct prb_error *err), void *context,
                      double *stopped_out, struct prb_error *err);

#endif
