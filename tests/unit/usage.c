/* usage: what the threads of a child did, read again and again as the collector does. */
#include "unit.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/usage.h"

#define THREADS 20
#define SPIN_MS 20
#define TURNS 20000

static int wake[2], woken[2];

static double thread_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Each byte wakes one of them. */
static void *run(void *none)
{
    char byte;
    while (read(wake[0], &byte, 1) == 1) {
        double until = thread_s() + SPIN_MS * 1e-3;
        while (thread_s() < until)
            ;
        if (write(woken[1], "", 1) != 1)
            break;
    }
    return none;
}

static pid_t begin_child(void)
{
    pthread_t thread;
    char byte;
    assert_true(pipe(wake) == 0 && pipe(woken) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&thread, NULL, run, NULL) != 0)
                _exit(1);
        (void)!write(woken[1], "", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(woken[0], &byte, 1), 1);
    return child;
}

static void read_usage(struct prb_proc *proc, struct prb_usage *before)
{
    struct prb_error err;
    PRB_AUTO(prb_usage) struct prb_usage after = {0};
    assert_ok(prb_usage_read(proc, false, before, &after, &err), err);
    struct prb_usage swap = *before;
    *before = after;
    after = swap;
}

/* Until none has run, nor wants to (a thread that was begun may not have had a CPU yet), and what the
 * process took beside them is known. */
static void settle(struct prb_proc *proc, struct prb_usage *usage)
{
    size_t ran = 1;
    for (int turn = 0; turn < TURNS && (ran || usage->others < 0); turn++) {
        read_usage(proc, usage);
        ran = 0;
        for (size_t i = 1; i < usage->count; i++)
            ran += usage->items[i].ran || usage->items[i].state != 'S';
        usleep(1000);
    }
    assert_int_equal(ran, 0);
    assert_true(usage->others >= 0);
}

static double sum(const struct prb_usage *usage, size_t *ran_out)
{
    double all = 0;
    *ran_out = 0;
    for (size_t i = 1; i < usage->count; i++) {
        all += usage->items[i].on_cpu;
        *ran_out += usage->items[i].ran;
    }
    return all;
}

static void threads(void **state)
{
    (void)state;
    struct prb_error err;
    size_t ran;
    char byte;
    pid_t child = begin_child();
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(child, &err);
    PRB_AUTO(prb_usage) struct prb_usage usage = {0};
    assert_non_null(proc);
    settle(proc, &usage);
    assert_int_equal(usage.count, THREADS + 2);

    /* None of those that sleep is read: a descriptor that is gone stays so. */
    for (size_t i = 1; i < usage.count; i++) {
        close(usage.items[i].kept[PRB_USAGE_SCHEDSTAT]);
        usage.items[i].kept[PRB_USAGE_SCHEDSTAT] = -1;
    }
    read_usage(proc, &usage);
    for (size_t i = 1; i < usage.count; i++)
        assert_int_equal(usage.items[i].kept[PRB_USAGE_SCHEDSTAT], -1);

    /* One that wakes is seen by the very next reading, and again when it ran before. */
    for (int turn = 0; turn < 6; turn++) {
        double before = sum(&usage, &ran);
        for (int i = 0; i <= turn; i++)
            assert_int_equal(write(wake[1], "", 1), 1);
        for (int i = 0; i <= turn; i++)
            assert_int_equal(read(woken[0], &byte, 1), 1);
        read_usage(proc, &usage);
        assert_true(sum(&usage, &ran) - before >= 0.99e-3 * SPIN_MS * (turn + 1));
        assert_true(ran >= 1);
        if (turn % 2)
            settle(proc, &usage);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
