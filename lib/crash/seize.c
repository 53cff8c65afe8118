/*
 * Holding all threads of a process: PTRACE_SEIZE and PTRACE_INTERRUPT, ptrace(2).  A thread that
 * waits in a system call goes on with it afterwards, since no signal is delivered.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "crash/crash.h"

#define PASSES 3 /* threads may begin while others are stopped */
#define WAIT_NS INT64_C(200000000)
#define NAP_NS 50000

void prb_seized_deinit(struct prb_seized *seized)
{
    for (size_t i = 0; i < seized->count; i++)
        ptrace(PTRACE_DETACH, seized->items[i].tid, NULL,
               (void *)(uintptr_t)seized->items[i].signal);
    free(seized->items);
    *seized = (struct prb_seized){0};
}

static bool has(const struct prb_seized *seized, pid_t tid)
{
    for (size_t i = 0; i < seized->count; i++)
        if (seized->items[i].tid == tid)
            return true;
    return false;
}

/* Tasks that were not held yet; how many were added. */
static size_t seize_new(struct prb_proc *proc, struct prb_seized *seized)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    size_t before = seized->count;
    if (!prb_proc_tids(proc, &tasks, NULL))
        return 0;
    for (size_t i = 0; i < tasks.count; i++) {
        pid_t tid = tasks.items[i].tid;
        if (has(seized, tid) || !PRB_GROW(seized->items, seized->count, seized->cap) ||
            ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
            continue;
        ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
        seized->items[seized->count++] = (struct prb_seized_task){.tid = tid};
    }
    return seized->count - before;
}

/* A stop that carries no event is a signal on its way, which is passed on in the end. */
static void await_stops(struct prb_seized *seized, size_t from)
{
    uint64_t until = prb_clock_ns() + WAIT_NS;
    for (size_t i = from; i < seized->count; i++) {
        struct prb_seized_task *task = &seized->items[i];
        int status;
        pid_t got;
        while ((got = waitpid(task->tid, &status, __WALL | WNOHANG)) == 0 && prb_clock_ns() < until)
            nanosleep(&(struct timespec){0, NAP_NS}, NULL);
        if (got == task->tid && WIFSTOPPED(status) && status >> 16 == 0)
            task->signal = WSTOPSIG(status);
    }
}

void prb_seize(pid_t pid, struct prb_seized *out)
{
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    *out = (struct prb_seized){0};
    for (int pass = 0; proc && pass < PASSES; pass++) {
        size_t from = out->count;
        if (!seize_new(proc, out))
            return;
        await_stops(out, from);
    }
}
