/*
 * Stopping several threads together: see stop_all.h.  The kernel lets go of what a tracer's thread
 * has stopped when that thread ends, so nothing stays stopped, whatever happens here.
 */
#include "native/stop_all.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/join.h"
#include "native/native.h"

#define POLL_NS 20000
/* A thread that runs enters the kernel at once, so one that has not stopped by then waits there,
 * for a CPU or a disk: it runs nothing of the program's before it stops. */
#define THREADS_WAIT_NS 3000000u
#define LONGEST_STOP_NS 2000000000u
#define PROCESS_WAIT_NS 200000000u
#define PROCESS_PASSES 3 /* threads may begin while others are stopped */

/* ---- the loop ---- */

/* 0, or the errno of PTRACE_SEIZE. */
static int seize(struct prb_stopped_thread *thread)
{
    thread->seized = ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) == 0;
    return thread->seized ? 0 : errno;
}

static void interrupt_all(const struct prb_stopped_thread *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (threads[i].seized)
            ptrace(PTRACE_INTERRUPT, threads[i].tid, NULL, NULL);
}

/* Whether it still is to be waited for.  A stop that carries no event, as ours does, is a signal on
 * its way to the thread, which gets it when it continues. */
static bool look_at(struct prb_stopped_thread *thread)
{
    int status;
    if (!thread->seized || thread->stopped)
        return false;
    pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);
    if (got != thread->tid)
        return got == 0;
    thread->stopped = WIFSTOPPED(status);
    if (thread->stopped && status >> 16 == 0)
        thread->signal = WSTOPSIG(status);
    return false;
}

static void await_all(struct prb_stopped_thread *threads, size_t count, uint64_t wait_ns)
{
    uint64_t until = prb_clock_ns() + wait_ns;
    for (size_t i = 0; i < count; i++)
        while (look_at(&threads[i]) && prb_clock_ns() < until)
            nanosleep(&(struct timespec){0, POLL_NS}, NULL);
}

static void continue_all(struct prb_stopped_thread *threads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        look_at(&threads[i]); /* it may have stopped late */
        if (threads[i].stopped &&
            ptrace(PTRACE_DETACH, threads[i].tid, NULL, (void *)(intptr_t)threads[i].signal) != 0)
            waitpid(threads[i].tid, NULL, __WALL | WNOHANG); /* killed meanwhile: it waits for us */
    }
}

/* ---- a process, until the caller lets it go ---- */

static bool has(const struct prb_stopped *stopped, pid_t tid)
{
    for (size_t i = 0; i < stopped->count; i++)
        if (stopped->items[i].tid == tid)
            return true;
    return false;
}

static void seize_new(struct prb_proc *proc, struct prb_stopped *stopped)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!prb_proc_tids(proc, &tasks, NULL))
        return;
    for (size_t i = 0; i < tasks.count; i++) {
        struct prb_stopped_thread thread = {.tid = tasks.items[i].tid};
        if (!has(stopped, thread.tid) && PRB_GROW(stopped->items, stopped->count, stopped->cap) &&
            seize(&thread) == 0)
            stopped->items[stopped->count++] = thread;
    }
}

void prb_stop_process(pid_t pid, struct prb_stopped *out)
{
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    *out = (struct prb_stopped){0};
    for (int pass = 0; proc && pass < PROCESS_PASSES; pass++) {
        size_t before = out->count;
        seize_new(proc, out);
        if (out->count == before)
            return;
        interrupt_all(out->items + before, out->count - before);
        await_all(out->items + before, out->count - before, PROCESS_WAIT_NS);
    }
}

void prb_stopped_deinit(struct prb_stopped *stopped)
{
    continue_all(stopped->items, stopped->count);
    free(stopped->items);
    *stopped = (struct prb_stopped){0};
}

/* ---- given threads, for some work ---- */

struct stop {
    struct prb_stopped_thread *threads;
    size_t count;
    int refused; /* errno of the first PTRACE_SEIZE that failed, but for a thread that ended */
    pid_t refused_tid;
    bool (*work)(void *context, struct prb_error *err);
    void *context;
    bool good; /* of the work */
    struct prb_error *err;
    double stopped_s;
};

static bool stop_all(struct stop *stop)
{
    for (size_t i = 0; i < stop->count; i++) {
        int sys = seize(&stop->threads[i]);
        if (sys && sys != ESRCH) {
            stop->refused = sys;
            stop->refused_tid = stop->threads[i].tid;
            return false;
        }
    }
    interrupt_all(stop->threads, stop->count);
    await_all(stop->threads, stop->count, THREADS_WAIT_NS);
    return true;
}

/* While threads are stopped nobody else's turn comes first, where that is allowed (root). */
static void take_priority(void)
{
    const struct sched_param lowest = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) != 0)
        setpriority(PRIO_PROCESS, 0, -20);
}

static void *stop_main(void *argument)
{
    struct stop *stop = argument;
    take_priority();
    uint64_t since = prb_clock_ns();
    if (stop_all(stop))
        stop->good = stop->work(stop->context, stop->err);
    continue_all(stop->threads, stop->count);
    stop->stopped_s = stop->refused ? 0 : 1e-9 * (double)(prb_clock_ns() - since);
    return NULL;
}

/* No signal ends or suspends us while threads are stopped; but the target can hang us (on a page
 * that it fills itself), and then the user may. */
static bool run(struct stop *stop)
{
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&thread, NULL, stop_main, stop) == 0;
    bool ended = ok && prb_join_within(thread, LONGEST_STOP_NS, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ended || (ok && pthread_join(thread, NULL) == 0);
}

bool prb_stop_threads(struct prb_proc *proc, const pid_t *tids, size_t count,
                      bool (*work)(void *context, struct prb_error *err), void *context,
                      double *stopped_out, struct prb_error *err)
{
    PRB_AUTO_FREE struct prb_stopped_thread *threads = calloc(count + 1, sizeof *threads);
    struct stop stop = {
        .threads = threads, .count = count, .work = work, .context = context, .err = err};
    if (!threads)
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++)
        threads[i].tid = tids[i];
    if (!run(&stop))
        return prb_nomem(err);
    if (stop.refused)
        return prb_stop_refused(proc, stop.refused_tid, stop.refused, err);
    *stopped_out = stop.stopped_s;
    return stop.good;
}
