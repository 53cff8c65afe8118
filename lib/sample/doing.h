/*
 * What a kernel thread does at a sample: runs, or waits in a system call, and how much processor
 * time it used.
 *
 * /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst) is cheap, and a thread
 * that waited and was given no turn since waits still; only when that says otherwise
 * /proc/PID/task/TID/syscall is asked (proc(5)).
 */
#ifndef PRB_SAMPLE_DOING_H
#define PRB_SAMPLE_DOING_H

#include "proc/proc.h"

struct prb_doing {
    pid_t pid, tid;
    int fd;      /* its schedstat, kept open; -1: not yet, or not kept */
    int call_fd; /* its syscall, kept open while it runs */
    bool known;  /* looked at before, and what follows is of then */
    /* processor time so far; time it waited for a processor; how often it was given one */
    uint64_t run_ns, delay_ns, turns;
    uint64_t used_ns, delayed_ns; /* of them between the last two looks */
    bool waits;                   /* in a system call */
    int64_t call;                 /* which one */
    prb_addr sp, argument;        /* its stack pointer and first argument */
};

void prb_doing_init(struct prb_doing *doing, pid_t pid, pid_t tid);
void prb_doing_deinit(struct prb_doing *doing);
/* Look now.  state false: processor time only.  False: the thread ended, or the kernel does not
 * tell. */
bool prb_doing_look(struct prb_doing *doing, bool state);
/* "futex", "epoll_wait"; of rarer calls "system call 123". */
const char *prb_call_name(int64_t call, char buffer[32]);

#endif
