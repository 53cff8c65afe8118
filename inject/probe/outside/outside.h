/*
 * The program probing, started by the probe for what is done from outside, where no tool is beside
 * the job: one that was started with its settings in the environment.
 */
#ifndef PRB_PROBE_OUTSIDE_H
#define PRB_PROBE_OUTSIDE_H

#include <stdatomic.h>
#include <stdint.h>

#define PRB_OUTSIDE_STACK 65536

/* Static; all but words begins as 0. */
struct prb_outside {
    const char *words[2]; /* `probing PID config WORD…`, which ends within a minute */
    char pid[16];
    atomic_bool running;
    uint8_t stack[PRB_OUTSIDE_STACK] __attribute__((aligned(64)));
};

/* Unless it runs already.  Any thread; never blocks. */
void prb_outside_start(struct prb_outside *outside);
/* In a process that shares our memory until it executes a program: none of the job's handlers runs
 * there, and no signal is blocked. */
void prb_outside_reset_signals(void);
/* In a child after fork(2). */
void prb_outside_forked(struct prb_outside *outside);

#endif
