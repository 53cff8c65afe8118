/*
 * Reads a thread from the CPU that it runs on, where only one of the two runs at a time.
 *
 * A thread that calls and returns every 50 ns has another stack at every reading from another CPU.
 * On its own CPU it cannot run while we do, and need not be stopped: it waits some ten microseconds
 * for the CPU, as it would for any other program.
 */
#ifndef PRB_PROC_SAME_CPU_H
#define PRB_PROC_SAME_CPU_H

#include <sched.h>

#include "proc/proc.h"

/* What the calling thread goes back to. */
struct prb_same_cpu {
    bool moved;
    int from;                                               /* the CPU */
    size_t size;                                            /* bytes of cpus in use */
    unsigned long cpus[8192 / (8 * sizeof(unsigned long))]; /* the kernel's NR_CPUS at most */
    struct prb_schedule { /* struct sched_attr, version 0: sched_setattr(2) */
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } schedule;
};

/*
 * Move the calling thread to the CPU of a task of a live process, with a short time slice.  False,
 * and nothing was done: the task ended, it is a real-time task (we might wait forever), or the
 * calling thread may not use its CPU.  The kernel may move the task elsewhere at any time.
 */
bool prb_same_cpu_begin(struct prb_same_cpu *out, struct prb_proc *proc, pid_t tid);
void prb_same_cpu_end(struct prb_same_cpu *same);
PRB_DEFINE_AUTO(prb_same_cpu, struct prb_same_cpu, prb_same_cpu_end)

#endif
