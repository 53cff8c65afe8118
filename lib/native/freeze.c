/*
 * Stopping several threads together: ptrace(2) by PTRACE_SEIZE and PTRACE_INTERRUPT, from a thread
 * of our own. The kernel lets go of whatever a tracer's thread holds when that thread ends, so
 * nothing stays stopped, whatever happens here.
 */
#include "native/freeze.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "native/native.h"

/* PTRACE_INTERRUPT makes a thread that runs enter the kernel at once, so one that has not stopped
 * by then waits there, for a processor or a disk: it runs nothing of the program's before it stops.
 */
#define STOP_WAIT_NS 3000000
#define POLL_NS 20000
#define LONGEST_STOP_S 2

struct held {
    pid_t tid;
    bool seized, stopped;
    int signal; /* to pass on when it goes on */
};

struct freeze {
    struct held *held;
    size_t count;
    int refused; /* errno of the first PTRACE_SEIZE that failed for another reason than the thread's
                    end */
    pid_t refused_tid;
    bool (*work)(void *context, struct prb_error *err);
    void *context;
    bool good; /* of the work */
    struct prb_error *err;
    double stood; /* s */
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool seize_all(struct freeze *freeze)
{
    for (size_t i = 0; i < freeze->count; i++) {
        struct held *held = &freeze->held[i];
        held->seized = ptrace(PTRACE_SEIZE, held->tid, NULL, NULL) == 0;
        if (!held->seized && errno != ESRCH) {
            freeze->refused = errno;
            freeze->refused_tid = held->tid;
            return false;
        }
    }
    for (size_t i = 0; i < freeze->count; i++)
        if (freeze->held[i].seized)
            ptrace(PTRACE_INTERRUPT, freeze->held[i].tid, NULL, NULL);
    return true;
}

/* A stop of another kind than ours came first: a signal on its way to the thread, which it gets
 * when it goes on. */
static void classify(struct held *held, int status)
{
    held->stopped = WIFSTOPPED(status);
    if (held->stopped && status >> 16 == 0)
        held->signal = WSTOPSIG(status);
}

static void await_all(struct freeze *freeze)
{
    int64_t deadline = now_ns() + STOP_WAIT_NS;
    for (size_t i = 0; i < freeze->count; i++) {
        struct held *held = &freeze->held[i];
        int status;
        while (held->seized && !held->stopped) {
            pid_t got = waitpid(held->tid, &status, __WALL | WNOHANG);
            if (got == held->tid)
                classify(held, status);
            if (got < 0 || (got == held->tid && !held->stopped) || now_ns() > deadline)
                break;
            if (got == 0)
                nanosleep(&(struct timespec){0, POLL_NS}, NULL);
        }
    }
}

/* While threads stand nobody else's turn comes first, where that is allowed (root). */
static void hurry(void)
{
    const struct sched_param lowest = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) != 0)
        setpriority(PRIO_PROCESS, 0, -20);
}

static void *freeze_main(void *argument)
{
    struct freeze *freeze = argument;
    hurry();
    int64_t since = now_ns();
    if (seize_all(freeze)) {
        await_all(freeze);
        freeze->good = freeze->work(freeze->context, freeze->err);
    }
    for (size_t i = 0; i < freeze->count; i++)
        if (freeze->held[i].stopped)
            ptrace(PTRACE_DETACH, freeze->held[i].tid, NULL,
                   (void *)(intptr_t)freeze->held[i].signal);
    freeze->stood = freeze->refused ? 0 : 1e-9 * (double)(now_ns() - since);
    return NULL;
}

/* No signal ends or suspends us while threads stand; but the target can hang us (on a page that it
 * fills itself), and then the user may. */
static bool run(struct freeze *freeze)
{
    pthread_t thread;
    sigset_t all, old;
    struct timespec until;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&thread, NULL, freeze_main, freeze) == 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LONGEST_STOP_S;
    bool ended = ok && pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ended || (ok && pthread_join(thread, NULL) == 0);
}

bool prb_freeze_run(struct prb_proc *proc, const pid_t *tids, size_t count,
                    bool (*work)(void *context, struct prb_error *err), void *context,
                    double *stood_out, struct prb_error *err)
{
    PRB_AUTO_FREE struct held *held = calloc(count + 1, sizeof *held);
    struct freeze freeze = {
        .held = held, .count = count, .work = work, .context = context, .err = err};
    if (!held)
        return prb_fail(err, PRB_NOMEM, "stopping threads");
    for (size_t i = 0; i < count; i++)
        held[i].tid = tids[i];
    if (!run(&freeze))
        return prb_fail(err, PRB_NOMEM, "a thread to stop others from");
    if (freeze.refused)
        return prb_stop_refused(proc, freeze.refused_tid, freeze.refused, err);
    *stood_out = freeze.stood;
    return freeze.good;
}
