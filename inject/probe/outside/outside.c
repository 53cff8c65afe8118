/*
 * The program shares nothing with the job: a thread of ours waits for its end; the job's own children
 * and signals do not notice (clone(2) without a signal of its end).
 */
#include "inject/probe/outside/outside.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/raw.h"
#include "inject/probe/crash/crash.h"
#include "inject/probe/server/server.h"
#include "inject/probe/thread.h"

#define LAST_SIGNAL 64
#define TIME_MAX 60 /* s, that it may take */
#define NAP_NS 20000000

void prb_outside_reset_signals(void)
{
    static const struct {
        uintptr_t handler;
        unsigned long flags;
        uintptr_t restorer;
        uint64_t mask;
    } none;
    static const uint64_t empty;
    for (int i = 1; i <= LAST_SIGNAL; i++)
        prb_raw(SYS_rt_sigaction, i, (long)&none, 0, sizeof none.mask, 0, 0);
    prb_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&empty, 0, sizeof empty, 0, 0);
}

/* Shares our memory until it executes the program, but not our descriptors and handlers. */
static int run_child(void *context)
{
    struct prb_outside *outside = context;
    char *arguments[] = {(char *)"probing",         outside->pid,
                         (char *)"config",          (char *)outside->words[0],
                         (char *)outside->words[1], NULL};
    prb_outside_reset_signals();
    long fd = prb_raw(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 0, 0);
    for (int i = 0; fd >= 0 && i < 3; i++)
        if (fd != i)
            prb_raw(SYS_dup3, fd, i, 0, 0, 0, 0);
    prb_close_descriptors(3, UINT_MAX);
    prb_raw(SYS_execve, (long)prb_crash_plan.program, (long)arguments,
            (long)prb_crash_plan.environment, 0, 0, 0);
    return 127;
}

static void await_end(long pid)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    uint64_t until = prb_clock_ns() + (uint64_t)TIME_MAX * 1000000000;
    while (prb_raw(SYS_wait4, pid, 0, __WALL | WNOHANG, 0, 0, 0) == 0) {
        if (prb_clock_ns() > until)
            prb_raw(SYS_kill, pid, SIGKILL, 0, 0, 0, 0);
        nanosleep(&nap, NULL);
    }
}

static void *run(void *context)
{
    struct prb_outside *outside = context;
    prb_crash_plan_make();
    if (prb_crash_plan.program[0] && prb_server_wait_begun(TIME_MAX)) { /* which it asks */
        snprintf(outside->pid, sizeof outside->pid, "%d", (int)getpid());
        long pid = prb_raw_clone(CLONE_VM | CLONE_VFORK, outside->stack + sizeof outside->stack,
                                 run_child, outside);
        if (pid > 0) {
            if (prb_crash_plan.name_tracer)
                prctl(PR_SET_PTRACER, pid);
            await_end(pid);
            if (prb_crash_plan.name_tracer)
                prctl(PR_SET_PTRACER, 0);
        }
    }
    atomic_store(&outside->running, false);
    return NULL;
}

void prb_outside_start(struct prb_outside *outside)
{
    if (!atomic_exchange(&outside->running, true) &&
        !prb_thread_start("probing-outside", run, outside, NULL))
        atomic_store(&outside->running, false);
}

void prb_outside_forked(struct prb_outside *outside) { atomic_store(&outside->running, false); }
