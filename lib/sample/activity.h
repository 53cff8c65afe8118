/*
 * What a kernel thread does at a sample: whether it runs or waits in a system call, and how much
 * CPU time it used.
 *
 * /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst) is cheap: a thread that
 * waited and has not been on a CPU since still waits.  Only when it has been,
 * /proc/PID/task/TID/syscall is read, too (proc(5)).
 */
#ifndef PRB_SAMPLE_ACTIVITY_H
#define PRB_SAMPLE_ACTIVITY_H

#include "proc/proc.h"

struct prb_activity {
    pid_t pid, tid;
    int fd;      /* its schedstat, open between readings; -1: it is not */
    int call_fd; /* its syscall, open while it runs */
    bool known;  /* it was read before, and what follows is of then */
    /* CPU time so far; time it waited for a CPU; how often it got one */
    uint64_t run_ns, delay_ns, turns;
    uint64_t used_ns, delayed_ns; /* of them between the last two readings */
    bool waits;                   /* in a system call */
    int64_t call;                 /* which one */
    prb_addr sp, argument;        /* its stack pointer and first argument */
};

void prb_activity_init(struct prb_activity *activity, pid_t pid, pid_t tid);
void prb_activity_deinit(struct prb_activity *activity);
/* Read it now.  state false: CPU time only.  False: the thread ended, or the kernel does not
 * say. */
bool prb_activity_read(struct prb_activity *activity, bool state);
/* "futex", "epoll_wait"; rarer ones as "system call 123". */
const char *prb_system_call_name(int64_t call, char buffer[32]);

#endif
