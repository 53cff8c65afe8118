/*
 * Reading beside a thread: on its own processor, where the two run by turns and never at once.
 *
 * A thread that calls and returns every 50 ns has another stack at every reading from another
 * processor.  While we have its turn it stands still, unstopped: it waits some ten microseconds for
 * its processor, as it would for any other program, and nothing of it is touched.
 */
#ifndef PRB_PROC_SAME_CPU_H
#define PRB_PROC_SAME_CPU_H

#include <sched.h>

#include "proc/proc.h"

/* What the calling thread goes back to. */
struct prb_same_cpu {
    bool moved;
    int from;                                                     /* the processor */
    size_t size;                                                  /* bytes of processors in use */
    unsigned long processors[8192 / (8 * sizeof(unsigned long))]; /* the kernel's NR_CPUS at most */
    struct prb_schedule { /* struct sched_attr, version 0: sched_setattr(2) */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } schedule;
};

/*
 * Move the calling thread to the processor of a task of a live process, with short turns.
 * False, and nothing was done: the task ended, it is a real-time one (we might wait for ever),
 * or its processor is none of those that the calling thread may use.  The task may be moved
 * elsewhere at any time.
 */
bool prb_same_cpu_begin(struct prb_same_cpu *out, struct prb_proc *proc, pid_t tid);
void prb_same_cpu_end(struct prb_same_cpu *same);
PRB_DEFINE_AUTO(prb_same_cpu, struct prb_same_cpu, prb_same_cpu_end)

#endif
