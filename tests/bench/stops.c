/*
 * What a stop costs at least in which a thread makes two system calls for its tracer, as in an
 * injection: the thread is awaited five times, from another CPU that polls, and nothing else is
 * done.  (To sleep until it stops takes twice as long.)
 *
 *     stops ROUNDS     one line of JSON: median and 99th percentile, microseconds
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOPS 4         /* begin and end of two calls */
#define REST_NS 3000000 /* between two stops */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int in_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void wait_for(pid_t pid)
{
    int status, got;
    while ((got = waitpid(pid, &status, __WALL | WNOHANG)) == 0)
        ;
    if (got != pid || !WIFSTOPPED(status))
        exit(1);
}

static double one(pid_t pid)
{
    double before = now_us();
    if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
        exit(1);
    wait_for(pid);
    for (int i = 0; i < STOPS; i++) {
        if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL))
            exit(1);
        wait_for(pid);
    }
    if (ptrace(PTRACE_CONT, pid, NULL, NULL))
        exit(1);
    return now_us() - before;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 0;
    double *took = rounds > 0 ? malloc((size_t)rounds * sizeof *took) : NULL;
    pid_t child = took ? fork() : -1;
    if (child == 0)
        for (;;)
            syscall(SYS_getppid);
    if (child < 0)
        return 2;
    struct sched_param first = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    sched_setscheduler(0, SCHED_FIFO, &first);
    if (ptrace(PTRACE_SEIZE, child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)))
        return 1;
    for (int i = 0; i < rounds; i++) {
        took[i] = one(child);
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    }
    kill(child, SIGKILL);
    qsort(took, (size_t)rounds, sizeof *took, in_order);
    printf("{\"median\": %.3f, \"p99\": %.3f}\n", took[rounds / 2], took[rounds * 99 / 100]);
    return 0;
}
