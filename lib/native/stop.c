/*
 * Registers and stack bytes of one thread, at one moment.
 *
 * A blocked thread need not be stopped: /proc/PID/task/TID/syscall has its stack pointer and
 * program counter, and the same answer before and after its stack was read proves that it did not
 * move (proc(5)).  A running one is seized, interrupted, copied and resumed (ptrace(2)); should it
 * enter one of the system calls that cannot take this (struct prb_arch, fragile_syscalls) within
 * those microseconds, that call ends in EINTR.  It happens in a thread of its own: when the target
 * does not stop in time, only the tracer's end makes the kernel let go of it.
 */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "arch/arch.h"
#include "base/clock.h"
#include "native/unwinder.h"
#include "proc/stat.h"

#define BLOCKED_TRIES 3         /* readings of a blocked thread that moves meanwhile */
#define STOP_WAIT_NS 1000000000 /* it did not stop: uninterruptible, or it waits for a CPU */
#define SPIN_NS 50000           /* how long we poll for the stop, before we sleep */

void prb_thread_copy_deinit(struct prb_thread_copy *copy)
{
    free(copy->stack);
    copy->stack = NULL;
    copy->stack_len = 0;
}

/* Stack bytes from sp up: what most stacks need at first, the rest of a deeper one in a second
 * read. */
#define FIRST_BYTES 49152
#define STILL_PAGE 4096

/* copy->stack has room for PRB_STACK_COPY_MAX bytes. */
static void read_stack(struct prb_mem *mem, prb_addr sp, struct prb_thread_copy *copy)
{
    copy->stack_start = sp;
    copy->stack_len = prb_mem_read_some(mem, sp, copy->stack, FIRST_BYTES);
    if (copy->stack_len == FIRST_BYTES)
        copy->stack_len += prb_mem_read_some(mem, sp + FIRST_BYTES, copy->stack + FIRST_BYTES,
                                             PRB_STACK_COPY_MAX - FIRST_BYTES);
}

/* What lies in the staging area, to the caller. */
static bool deliver(const struct prb_thread_copy *copy, struct prb_thread_copy *out,
                    struct prb_error *err)
{
    uint8_t *stack = malloc(copy->stack_len ? copy->stack_len : 1);
    if (!stack)
        return prb_nomem(err);
    memcpy(stack, copy->stack, copy->stack_len);
    *out = *copy;
    out->stack = stack;
    return true;
}

void prb_stops_deinit(struct prb_stops *stops)
{
    prb_stopper_free(stops->thread);
    free(stops->staging);
    *stops = (struct prb_stops){0};
}

/* Page faults here, not while a thread is stopped. */
static bool make_staging(struct prb_stops *stops, struct prb_error *err)
{
    if (stops->staging)
        return true;
    if (!(stops->staging = malloc(PRB_STACK_COPY_MAX)))
        return prb_nomem(err);
    memset(stops->staging, 0, PRB_STACK_COPY_MAX);
    return true;
}

/* ---- without stopping ---- */

static bool same_call(const struct prb_syscall *a, const struct prb_syscall *b)
{
    return a->running == b->running && a->number == b->number && a->sp == b->sp && a->pc == b->pc &&
           memcmp(a->args, b->args, sizeof a->args) == 0;
}

/* *blocked_out false: it runs (or moves too often) and nothing was copied. */
static bool copy_blocked(struct prb_proc *proc, struct prb_mem *mem, pid_t tid,
                         struct prb_thread_copy *copy, struct prb_syscall *call_out,
                         bool *blocked_out, struct prb_error *err)
{
    const struct prb_arch *arch = prb_arch_host();
    struct prb_syscall call, again;
    *blocked_out = false;
    if (!prb_proc_syscall(proc, tid, &call, err))
        return false;
    for (int try = 0; try < BLOCKED_TRIES && !call.running; try++) {
        read_stack(mem, call.sp, copy);
        if (!prb_proc_syscall(proc, tid, &again, err))
            return false;
        if (same_call(&call, &again)) {
            copy->registers.known = 0;
            prb_register_set(&copy->registers, arch->sp, call.sp);
            prb_register_set(&copy->registers, arch->pc, call.pc);
            *call_out = call;
            *blocked_out = true;
            return true;
        }
        call = again;
    }
    return true;
}

static bool is_fragile(const struct prb_syscall *call)
{
    for (const int *number = prb_arch_host()->fragile_syscalls; *number >= 0; number++)
        if (call->number == *number)
            return true;
    return false;
}

/* Letter of /proc/PID/task/TID/stat; 0: not known. */
static char task_state(struct prb_proc *proc, pid_t tid)
{
    struct prb_stat stat;
    char name[40];
    snprintf(name, sizeof name, "task/%d/stat", (int)tid);
    return prb_stat_read(proc, name, &stat) ? stat.state : 0;
}

/* Who traces the task; 0: nobody. */
static pid_t task_tracer(struct prb_proc *proc, pid_t tid)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    char name[40];
    snprintf(name, sizeof name, "task/%d/status", (int)tid);
    int64_t tracer;
    bool known =
        prb_proc_text(proc, name, &text, NULL) && prb_status_number(&text, "TracerPid", &tracer);
    return known ? (pid_t)tracer : 0;
}

/* ---- stopping ---- */

struct stop {
    struct prb_mem *mem;
    pid_t tid;
    prb_during_stop_fn *during;
    void *context;
    struct prb_stops *stops;
    struct prb_thread_copy *copy; /* its stack is the staging area */
    struct prb_error err;
    int sys;   /* errno of a PTRACE_SEIZE that was refused */
    bool done; /* the copy is good */
};

/* Wait for any stop or the end of the task.  *since_out: a moment when it was not stopped yet. */
static bool await_stop(pid_t tid, int *status_out, uint64_t *since_out)
{
    uint64_t begin = prb_clock_ns();
    pid_t got;
    /* One that runs on another CPU stops within microseconds. */
    for (*since_out = begin; prb_clock_ns() - begin < SPIN_NS; *since_out = prb_clock_ns()) {
        got = waitpid(tid, status_out, __WALL | WNOHANG);
        if (got)
            return got == tid;
    }
    /* One that waits for a CPU, perhaps for ours, stops when it gets it, and that wakes us. */
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    do
        got = waitpid(tid, status_out, __WALL);
    while (got < 0 && errno == EINTR);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    *since_out = prb_clock_ns();
    return got == tid;
}

/* One that ends under its tracer has ended for nobody else before the tracer waited for it: the
 * thread stays in its process, and that in the process table.  Where this takes too long, the end
 * of our thread does the same. */
static void await_end(pid_t tid)
{
    int status, old;
    pid_t got;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    do
        got = waitpid(tid, &status, __WALL);
    while (got < 0 && errno == EINTR);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    if (got == tid && WIFSTOPPED(status))
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

static bool copy_stopped(struct stop *stop)
{
    const struct prb_arch *arch = prb_arch_host();
    elf_gregset_t gregset;
    struct iovec iov = {&gregset, sizeof gregset};
    if (ptrace(PTRACE_GETREGSET, stop->tid, (void *)(uintptr_t)NT_PRSTATUS, &iov))
        return prb_fail_sys(&stop->err, errno, "thread %d: its registers", (int)stop->tid);
    if (!prb_arch_registers(arch, &gregset, iov.iov_len, &stop->copy->registers, &stop->err))
        return false;
    read_stack(stop->mem, stop->copy->registers.value[arch->sp], stop->copy);
    if (stop->during)
        stop->during(stop->context);
    return true;
}

static bool interrupt_and_copy(struct stop *stop)
{
    int status = 0;
    uint64_t since = 0;
    if (ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL)) {
        prb_fail_sys(&stop->err, errno, "thread %d", (int)stop->tid);
        await_end(stop->tid);
        return false;
    }
    if (!await_stop(stop->tid, &status, &since) || !WIFSTOPPED(status))
        return prb_fail(&stop->err, PRB_GONE, "thread %d ended", (int)stop->tid);
    bool good = copy_stopped(stop);
    /* A stop that carries no event is a signal on its way: pass it on.  Events, our interrupt and
     * group-stop, end with nothing to deliver, and the kernel puts a group-stop back by itself. */
    long signal = status >> 16 ? 0 : WSTOPSIG(status);
    bool there = ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)signal) == 0;
    stop->copy->stopped = (double)(prb_clock_ns() - since) * 1e-9;
    if (!there) /* it was killed */
        await_end(stop->tid);
    return good;
}

static void seize_and_copy(void *argument)
{
    struct stop *stop = argument;
    if (ptrace(PTRACE_SEIZE, stop->tid, NULL, NULL))
        stop->sys = errno;
    else
        stop->done = interrupt_and_copy(stop);
}

bool prb_stop_refused(struct prb_proc *proc, pid_t tid, int sys, struct prb_error *err)
{
    pid_t tracer = sys == EPERM ? task_tracer(proc, tid) : 0;
    if (!tracer)
        return prb_fail_sys(err, sys, "cannot stop thread %d", (int)tid);
    prb_fail(err, PRB_BUSY, "thread %d is traced by process %d", (int)tid, (int)tracer);
    return prb_error_remedy(err, "detach the debugger or strace that traces it");
}

static bool copy_by_stop(struct prb_proc *proc, struct stop *stop, struct prb_error *err)
{
    struct prb_error failure = {0};
    if (!prb_stopper_run(&stop->stops->thread, seize_and_copy, stop, STOP_WAIT_NS, &failure)) {
        if (failure.code == PRB_TIMEOUT)
            prb_fail(&failure, PRB_TIMEOUT, "thread %d did not stop within %d ms", (int)stop->tid,
                     STOP_WAIT_NS / 1000000);
        if (err)
            *err = failure;
        return false;
    }
    if (stop->sys)
        return prb_stop_refused(proc, stop->tid, stop->sys, err);
    if (!stop->done && err)
        *err = stop->err;
    return stop->done;
}

/* ---- both ---- */

static bool take_live(struct prb_proc *proc, struct prb_mem *mem, pid_t tid,
                      enum prb_stop_rule rule, struct stop *stop, struct prb_error *err)
{
    bool blocked;
    struct prb_syscall call;
    struct prb_error unread = {0};
    if (!copy_blocked(proc, mem, tid, stop->copy, &call, &blocked, &unread)) {
        /* A kernel without that file, or a thread that ended; trying to stop it will show which. */
        if (rule == PRB_STOP_NEVER || unread.code == PRB_PERMISSION) {
            if (err)
                *err = unread;
            return false;
        }
        blocked = false;
    }
    if (blocked) {
        char state = rule == PRB_STOP_USEFUL && !is_fragile(&call) ? task_state(proc, tid) : 'D';
        /* Only an interruptible sleep stops at once; T and t are stopped already. */
        if (state != 'S' && state != 'R')
            return true;
        struct prb_registers told = stop->copy->registers;
        if (copy_by_stop(proc, stop, NULL))
            return true;
        /* What /proc gave is better than nothing. */
        stop->copy->registers = told;
        read_stack(mem, call.sp, stop->copy);
        return true;
    }
    if (rule == PRB_STOP_NEVER)
        return prb_fail(err, PRB_BUSY, "thread %d is running", (int)tid);
    return copy_by_stop(proc, stop, err);
}

/* What stands still needs no copy of its own moment: the rest is read page by page as the walk
 * comes to it, and no more, since in a snapshot every page counts. */
static void read_still_stack(struct prb_mem *mem, prb_addr sp, struct prb_thread_copy *copy)
{
    copy->stack_start = sp;
    copy->stack_len = prb_mem_read_some(mem, sp, copy->stack, STILL_PAGE - sp % STILL_PAGE);
}

static bool take_saved(struct prb_proc *proc, struct prb_mem *mem, pid_t tid,
                       struct prb_thread_copy *copy, struct prb_error *err)
{
    unsigned sp = prb_arch_host()->sp;
    if (!prb_proc_registers(proc, tid, &copy->registers, err))
        return false;
    if (prb_register_known(&copy->registers, sp))
        read_still_stack(mem, copy->registers.value[sp], copy);
    return true;
}

bool prb_thread_copy_take(struct prb_proc *proc, struct prb_mem *mem, pid_t tid,
                          enum prb_stop_rule rule, prb_during_stop_fn *during_stop, void *context,
                          struct prb_stops *stops, struct prb_thread_copy *out,
                          struct prb_error *err)
{
    if (!make_staging(stops, err))
        return false;
    struct prb_thread_copy copy = {.stack = stops->staging};
    struct stop stop = {.mem = mem,
                        .tid = tid,
                        .during = during_stop,
                        .context = context,
                        .stops = stops,
                        .copy = &copy};
    bool good = prb_proc_live(proc) ? take_live(proc, mem, tid, rule, &stop, err)
                                    : take_saved(proc, mem, tid, &copy, err);
    return good && deliver(&copy, out, err);
}
