/*
 * A job that was started with recording on has no tool beside it: the program probing is started,
 * outside, which finds names and the anchor by reading memory and tells them (request.c).  A thread
 * of ours waits for its end; the program's own children and signals do not notice (clone(2) without
 * a signal of its end).
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/descriptors.h"
#include "base/raw.h"
#include "inject/probe/crash/crash.h"
#include "inject/probe/thread.h"
#include "inject/probe/torch/torch.h"

#define STACK_BYTES 65536
#define LAST_SIGNAL 64
#define TIME_MAX 60 /* s, that it may take */
#define NAP_NS 20000000

static uint8_t stack[STACK_BYTES] __attribute__((aligned(64)));
static char pid_text[16];
static atomic_bool running;

/* Shares our memory until it executes the program, but not our descriptors and handlers. */
static int run_child(void *nothing)
{
    static const struct {
        uintptr_t handler;
        unsigned long flags;
        uintptr_t restorer;
        uint64_t mask;
    } none;
    static const uint64_t empty;
    char *arguments[] = {(char *)"probing", pid_text, (char *)"config", (char *)"--names", NULL};
    (void)nothing;
    for (int i = 1; i <= LAST_SIGNAL; i++)
        prb_raw(SYS_rt_sigaction, i, (long)&none, 0, sizeof none.mask, 0, 0);
    prb_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&empty, 0, sizeof empty, 0, 0);
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

static void *start(void *nothing)
{
    (void)nothing;
    prb_crash_plan_make();
    if (prb_crash_plan.program[0]) {
        snprintf(pid_text, sizeof pid_text, "%d", (int)getpid());
        long pid = prb_raw_clone(CLONE_VM | CLONE_VFORK, stack + sizeof stack, run_child, NULL);
        if (pid > 0) {
            if (prb_crash_plan.name_tracer)
                prctl(PR_SET_PTRACER, pid);
            await_end(pid);
            if (prb_crash_plan.name_tracer)
                prctl(PR_SET_PTRACER, 0);
        }
    }
    atomic_store(&running, false);
    return NULL;
}

void prb_torch_ask_outside(void)
{
    if (!atomic_exchange(&running, true) && !prb_thread_start("probing-torch", start, NULL, NULL))
        atomic_store(&running, false);
}

void prb_torch_outside_forked(void) { atomic_store(&running, false); }
