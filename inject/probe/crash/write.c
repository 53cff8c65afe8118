/*
 * Starting the writer from a handler.  The child shares the memory of the process (CLONE_VM, so
 * that nothing of a large process is copied) but has descriptors and signal handlers of its own; it
 * runs on a static stack until it executes the program, and tells nobody that it ended (no SIGCHLD:
 * the program may count its children).  clone(2), execve(2), prctl(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "base/descriptors.h"
#include "base/raw.h"
#include "inject/probe/crash/crash.h"

#define STACK_BYTES 32768
#define PIPE_AT 3 /* where the writer finds its pipe */
#define LAST_SIGNAL 64
#define SIGNAL(number) (UINT64_C(1) << ((number) - 1))
/* What ends or stops a whole job (a terminal's keys, a launcher that lost another rank) must not
 * take the dump away: the writer ends soon by itself. */
#define NOT_FOR_WRITER                                                                             \
    (SIGNAL(SIGHUP) | SIGNAL(SIGINT) | SIGNAL(SIGQUIT) | SIGNAL(SIGTERM) | SIGNAL(SIGPIPE) |       \
     SIGNAL(SIGTSTP) | SIGNAL(SIGTTIN) | SIGNAL(SIGTTOU))
#define START_NS UINT64_C(10000000000) /* for the child to be let go, on a busy machine */
#define END_NS UINT64_C(3000000000)    /* for the writer to tell of it and end, after its word */
#define NAP_NS 1000000

/* The kernel's, which is not libc's. */
struct action {
    uintptr_t handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
};

static uint8_t stack[STACK_BYTES] __attribute__((aligned(64)));
static struct {
    int read_end, write_end;
    volatile uint32_t go;
    char pid[16], record[24];
} child;

/* A handler of the program must not run here: it would be in the memory of both. */
static void set_signals(void)
{
    static const struct action none, ignored = {.handler = (uintptr_t)SIG_IGN};
    static const uint64_t empty;
    for (int i = 1; i <= LAST_SIGNAL; i++)
        PRB_RAW4(SYS_rt_sigaction, i, NOT_FOR_WRITER >> (i - 1) & 1 ? &ignored : &none, NULL,
                 sizeof none.mask);
    PRB_RAW4(SYS_rt_sigprocmask, SIG_SETMASK, &empty, NULL, sizeof empty);
}

/* The writer holds every thread, the one that waits for it, too: when it hangs, a timer of its own
 * ends it, and the kernel lets go of them. */
static void set_timer(void)
{
    const struct itimerval end = {
        .it_value = {.tv_sec = (time_t)(prb_crash_plan.wait_ns / 1000000000),
                     .tv_usec = (suseconds_t)(prb_crash_plan.wait_ns % 1000000000 / 1000)}};
    PRB_RAW3(SYS_setitimer, ITIMER_REAL, &end, NULL);
}

/* Of a program that closed them: a dump must not become the standard error. */
static void open_standard(void)
{
    for (int fd = 0; fd < PIPE_AT; fd++)
        if (PRB_RAW3(SYS_fcntl, fd, F_GETFD, 0) == -EBADF)
            PRB_RAW4(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
}

static int run_child(void *nothing)
{
    const struct timespec wait = {.tv_sec = (time_t)(START_NS / 1000000000)};
    char *arguments[] = {(char *)"probing", (char *)"crash", (char *)"write",
                         child.pid,         child.record,    NULL};
    (void)nothing;
    while (!child.go)
        if (PRB_RAW4(SYS_futex, &child.go, FUTEX_WAIT_PRIVATE, 0, &wait) == -ETIMEDOUT)
            return 126;
    PRB_RAW1(SYS_close, child.read_end);
    if (child.write_end == PIPE_AT) {
        PRB_RAW3(SYS_fcntl, PIPE_AT, F_SETFD, 0);
    } else {
        PRB_RAW3(SYS_dup3, child.write_end, PIPE_AT, 0);
        PRB_RAW1(SYS_close, child.write_end);
    }
    open_standard();
    PRB_RAW3(SYS_dup3, 2, 1, 0);
    prb_close_descriptors(PIPE_AT + 1, UINT_MAX);
    set_signals();
    set_timer();
    PRB_RAW3(SYS_execve, prb_crash_plan.program, arguments, prb_crash_plan.environment);
    return 127;
}

static void nap(void)
{
    const struct timespec rest = {.tv_nsec = NAP_NS};
    PRB_RAW2(SYS_nanosleep, &rest, NULL);
}

/* Its last word; 0: it ended, or the time did, without one. */
static char await_word(int read_end)
{
    uint64_t until = prb_crash_now() + prb_crash_plan.wait_ns;
    for (uint64_t now; (now = prb_crash_now()) < until;) {
        struct pollfd fd = {.fd = read_end, .events = POLLIN};
        const struct timespec left = {.tv_sec = (time_t)((until - now) / 1000000000),
                                      .tv_nsec = (long)((until - now) % 1000000000)};
        long got = PRB_RAW5(SYS_ppoll, &fd, 1, &left, NULL, sizeof(uint64_t));
        if (got == -EINTR)
            continue;
        char word = 0;
        return got > 0 && PRB_RAW3(SYS_read, read_end, &word, 1) == 1 ? word : 0;
    }
    return 0;
}

static bool collect(long pid)
{
    return PRB_RAW4(SYS_wait4, pid, NULL, __WALL | WNOHANG, NULL) != 0; /* or it is collected */
}

static void end_child(long pid, bool willing)
{
    uint64_t until = prb_crash_now() + END_NS;
    if (!willing)
        PRB_RAW2(SYS_kill, pid, SIGKILL);
    while (!collect(pid) && prb_crash_now() < until)
        nap();
    if (willing && prb_crash_now() >= until)
        end_child(pid, false);
}

bool prb_crash_write(struct prb_crash_record *record)
{
    int ends[2];
    if (!prb_crash_plan.program[0] || PRB_RAW2(SYS_pipe2, ends, O_CLOEXEC) != 0)
        return false;
    struct prb_crash_text pid_text = {child.pid, child.pid + sizeof child.pid};
    struct prb_crash_text record_text = {child.record, child.record + sizeof child.record};
    prb_crash_add_number(&pid_text, (uint64_t)record->pid, 10, 1);
    prb_crash_add_number(&record_text, (uintptr_t)record, 16, 1);
    child.read_end = ends[0];
    child.write_end = ends[1];
    child.go = 0;
    long pid = prb_raw_clone(CLONE_VM, stack + sizeof stack, run_child, NULL);
    PRB_RAW1(SYS_close, ends[1]);
    char word = 0;
    if (pid > 0) {
        if (prb_crash_plan.name_tracer)
            PRB_RAW2(SYS_prctl, PR_SET_PTRACER, pid);
        child.go = 1;
        PRB_RAW3(SYS_futex, &child.go, FUTEX_WAKE_PRIVATE, 1);
        word = await_word(ends[0]);
        end_child(pid, word != 0);
        if (prb_crash_plan.name_tracer)
            PRB_RAW2(SYS_prctl, PR_SET_PTRACER, 0);
    }
    PRB_RAW1(SYS_close, ends[0]);
    return word == PRB_CRASH_WRITTEN;
}
