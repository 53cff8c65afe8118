/*
 * Stopping several threads together: ptrace(2) by PTRACE_SEIZE and PTRACE_INTERRUPT, from a thread
 * of our own. The kernel lets go of whatever a tracer's thread holds when that thread ends, so
 * nothing stays stopped, whatever happens here.
 */
#include "native/freeze.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "native/native.h"

#define STOP_WAIT_NS 50000000
#define POLL_NS 20000

struct held {
    pid_t tid;
    bool seized, stopped;
    int signal; /* to pass on when it goes on */
};

struct prb_freeze {
    pthread_t thread;
    sem_t ready, release;
    struct held *held;
    size_t count, stopped;
    int refused; /* errno of the first PTRACE_SEIZE that failed for another reason than the thread's
                    end */
    pid_t refused_tid;
    int64_t since;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool seize_all(struct prb_freeze *freeze)
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

static void await_all(struct prb_freeze *freeze)
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
        freeze->stopped += held->stopped;
    }
}

static void *freeze_main(void *argument)
{
    struct prb_freeze *freeze = argument;
    freeze->since = now_ns();
    if (seize_all(freeze))
        await_all(freeze);
    sem_post(&freeze->ready);
    while (sem_wait(&freeze->release) != 0 && errno == EINTR) {
    }
    for (size_t i = 0; i < freeze->count; i++)
        if (freeze->held[i].stopped)
            ptrace(PTRACE_DETACH, freeze->held[i].tid, NULL,
                   (void *)(intptr_t)freeze->held[i].signal);
    return NULL;
}

double prb_freeze_free(struct prb_freeze *freeze)
{
    if (!freeze)
        return 0;
    sem_post(&freeze->release);
    pthread_join(freeze->thread, NULL);
    double stood = freeze->stopped ? 1e-9 * (double)(now_ns() - freeze->since) : 0;
    sem_destroy(&freeze->ready);
    sem_destroy(&freeze->release);
    free(freeze->held);
    free(freeze);
    return stood;
}

static bool start(struct prb_freeze *freeze)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&freeze->thread, NULL, freeze_main, freeze) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

struct prb_freeze *prb_freeze_new(struct prb_proc *proc, const pid_t *tids, size_t count,
                                  size_t *stopped_out, struct prb_error *err)
{
    struct prb_freeze *freeze = calloc(1, sizeof *freeze);
    if (!freeze || !(freeze->held = calloc(count + 1, sizeof *freeze->held))) {
        free(freeze);
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "stopping threads"));
    }
    for (size_t i = 0; i < count; i++)
        freeze->held[freeze->count++].tid = tids[i];
    sem_init(&freeze->ready, 0, 0);
    sem_init(&freeze->release, 0, 0);
    if (!start(freeze)) {
        free(freeze->held);
        free(freeze);
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "a thread to stop others from"));
    }
    while (sem_wait(&freeze->ready) != 0 && errno == EINTR) {
    }
    if (freeze->refused) {
        pid_t tid = freeze->refused_tid;
        int sys = freeze->refused;
        prb_freeze_free(freeze);
        return PRB_NULL(prb_stop_refused(proc, tid, sys, err));
    }
    *stopped_out = freeze->stopped;
    return freeze;
}
