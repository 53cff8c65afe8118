/*
 * The stop: one thread is seized, interrupted, checked, set to the stub's registers and released,
 * all by ptrace(2) from a thread of our own (when that thread ends, the kernel releases what it
 * traces).
 *
 * Stops are distinguished by their kind, as ptrace(2) lists them; only system call stops are
 * counted.  After each remote call the saved registers are restored, so the thread continues its
 * own call whatever happens to us.  Should we die during a remote call, it returns to a frame of
 * rt_sigreturn(2) below the thread's stack, as a signal handler does, and from there to the
 * thread's own call.  No traps are used: they would reset the program's handler of SIGTRAP.
 * Between the first stop and the last nothing is allocated or printed.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/join.h"
#include "inject/enter/steps.h"
#include "proc/source.h"
#include "proc/stat.h"

#define STACK_LEN (64u << 10)
#define SCRATCH_LEN (PRB_FRAME_MAX + PRB_XSTATE_MAX + STACK_LEN)
#define FIRST_STOP_NS 20000000       /* a thread that has not stopped by then: try another */
#define LONGEST_STOP_NS 2000000000ll /* usual: 0.1 ms on an idle machine */
#define POLL_NS 200000               /* poll so long for a stop, then sleep until it comes */

struct stop {
    struct prb_chooser *chooser;
    const struct prb_inject_arch *arch;
    const struct prb_choice *choice;
    struct prb_borrowed *borrowed;
    struct prb_error err;
    struct prb_stub_page page;
    uint64_t saved[PRB_INJECT_WORDS], working[PRB_INJECT_WORDS];
    size_t extended_len;
    _Alignas(64) uint8_t extended[PRB_XSTATE_MAX];
    uint8_t frame[PRB_FRAME_MAX];
    uint8_t below[PRB_XSTATE_MAX]; /* the extended state, as stored at the lifeline */
    uint64_t mask;                 /* of its signals */
    prb_addr lifeline;             /* stack pointer from which a remote call returns; 0: none */
    bool apart;                    /* we run on another CPU than the thread */
    uint64_t since;                /* when it stopped */
    atomic_bool touched;           /* it was stopped: do not give up half-way */
    int signal;                    /* to deliver when it is released */
};

static uint64_t processor_clock(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/* ---- CPUs ---- */

static void stay_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Whether no thread waits for a CPU: proc_loadavg(5) counts the runnable ones, ours included. */
static bool nobody_waits(void)
{
    char text[128];
    unsigned running;
    prb_read_text("/proc/loadavg", text, sizeof text);
    return sscanf(text, "%*f %*f %*f %u/", &running) == 1 &&
           running <= sysconf(_SC_NPROCESSORS_ONLN);
}

/* False: there is no other CPU, or others want it and would be moved to the thread's. */
static bool stay_off(int processor)
{
    cpu_set_t set;
    if (!nobody_waits() || sched_getaffinity(0, sizeof set, &set))
        return false;
    CPU_CLR(processor, &set);
    return CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) == 0;
}

/* ---- stops ---- */

enum event { EVENT_STOP, EVENT_SYSCALL, EVENT_SIGNAL, EVENT_END };

static enum event classify(int status, int *signal_out)
{
    *signal_out = 0;
    if (!WIFSTOPPED(status))
        return EVENT_END;
    if (status >> 16 == PTRACE_EVENT_STOP)
        return EVENT_STOP; /* our interrupt, or a group-stop */
    if (WSTOPSIG(status) == (SIGTRAP | 0x80))
        return EVENT_SYSCALL;
    *signal_out = WSTOPSIG(status);
    return EVENT_SIGNAL;
}

/*
 * The next stop.  With a CPU of our own we poll for it: being woken takes longer than all the
 * rest.  On a busy machine we share the thread's CPU and take turns.
 */
static enum event await(struct stop *stop, bool first)
{
    int status = 0, old;
    pid_t got = 0, tid = stop->choice->tid;
    bool looked = stop->apart;
    uint64_t until = looked ? prb_clock_ns() + POLL_NS : 0;
    while (stop->apart && (got = waitpid(tid, &status, __WALL | WNOHANG)) == 0)
        stop->apart = prb_clock_ns() < until;
    if (got == 0) {
        if (looked)
            stay_on(stop->choice->cpu);
        if (first)
            pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
        do
            got = waitpid(tid, &status, __WALL);
        while (got < 0 && errno == EINTR);
        if (first)
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    }
    if (first)
        stop->since = prb_clock_ns();
    return got == tid ? classify(status, &stop->signal) : EVENT_END;
}

static bool set_registers(struct stop *stop, uint64_t *words)
{
    struct iovec iov = {words, stop->arch->words * sizeof *words};
    return ptrace(PTRACE_SETREGSET, stop->choice->tid, (void *)NT_PRSTATUS, &iov) == 0;
}

/* ---- remote calls ---- */

/* Make the thread do one system call, by an instruction that exists already.  *result_out is valid
 * after EVENT_SYSCALL; after any other event the thread has its own registers and did not call. */
static enum event remote_call(struct stop *stop, int number, const uint64_t args[6],
                              int64_t *result_out)
{
    const struct prb_inject_arch *arch = stop->arch;
    pid_t tid = stop->choice->tid;
    memcpy(stop->working, stop->saved, sizeof stop->working);
    stop->working[arch->pc] = stop->chooser->addresses->syscall_code;
    if (stop->lifeline) {
        stop->working[arch->pc] = stop->chooser->addresses->syscall_return;
        stop->working[arch->sp] = stop->lifeline;
    }
    stop->working[arch->number] = (uint64_t)number;
    if (arch->original >= 0)
        stop->working[arch->original] = (uint64_t)-1;
    for (unsigned i = 0; i < 6; i++)
        stop->working[arch->args[i]] = args[i];
    if (!set_registers(stop, stop->working))
        return EVENT_END;
    for (int stops = 0; stops < 2;) {
        if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL))
            return EVENT_END;
        enum event event = await(stop, false);
        if (event == EVENT_SIGNAL)
            set_registers(stop, stop->saved);
        if (event == EVENT_SIGNAL || event == EVENT_END)
            return event;
        stops += event == EVENT_SYSCALL;
    }
    struct iovec iov = {stop->working, arch->words * sizeof *stop->working};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov))
        return EVENT_END;
    *result_out = (int64_t)stop->working[arch->result];
    return set_registers(stop, stop->saved) ? EVENT_SYSCALL : EVENT_END;
}

/* ---- verdicts: each ends the stop ---- */

static void let_go(struct stop *stop)
{
    ptrace(PTRACE_DETACH, stop->choice->tid, NULL, (void *)(long)stop->signal);
}

static bool another_time(struct stop *stop, enum prb_unfit why)
{
    let_go(stop);
    stop->borrowed->why = why;
    return true;
}

static bool hopeless(struct stop *stop, enum prb_code code, const char *what, int64_t result)
{
    let_go(stop);
    if (result >= 0)
        return prb_fail(&stop->err, code, "%s", what);
    if (result != -EPERM && result != -EACCES)
        return prb_fail_sys(&stop->err, (int)-result, "the target cannot %s", what);
    prb_fail(&stop->err, PRB_PERMISSION,
             "the target may not %s: a seccomp filter or a security module (SELinux) forbids it",
             what);
    return prb_error_remedy(&stop->err, "Start the job with PROBING=1, or without that rule");
}

/* A remote call that did not happen. */
static bool interrupted(struct stop *stop, enum event event)
{
    if (event == EVENT_SIGNAL)
        return another_time(stop, PRB_UNFIT_SIGNAL);
    stop->borrowed->why =
        PRB_UNFIT_MOVED; /* it ended; the next choice finds out whether the process did */
    return true;
}

/* ---- during the stop ---- */

size_t prb_extended_state(const struct prb_inject_arch *arch, pid_t tid, uint8_t *out)
{
    const size_t most = PRB_XSTATE_MAX - 8;
    struct iovec iov = {out, most};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)arch->extended_note, &iov) ||
        iov.iov_len < arch->extended_min || iov.iov_len >= most)
        return 0;
    size_t len = iov.iov_len;
    /* The kernel takes whole units of the set alone: SVE's have 16 bytes. */
    struct iovec more = {out + len, (most - len) & ~(size_t)15};
    if (arch->more_note && len == arch->extended_min &&
        ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)arch->more_note, &more) == 0)
        len += more.iov_len;
    return len;
}

static bool read_state(struct stop *stop)
{
    struct iovec general = {stop->saved, stop->arch->words * sizeof *stop->saved};
    pid_t tid = stop->choice->tid;
    stop->extended_len = prb_extended_state(stop->arch, tid, stop->extended);
    return stop->extended_len &&
           ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &general) == 0 &&
           ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof stop->mask, &stop->mask) == 0;
}

static bool is_fragile(const struct prb_inject_arch *arch, int64_t number)
{
    for (size_t i = 0; i < arch->fragile_count; i++)
        if (arch->fragile[i] == number)
            return true;
    return false;
}

/* Whether an unblocked signal is pending for the thread, or for the process. */
static bool signal_waits(const struct stop *stop)
{
    siginfo_t waiting[16];
    for (uint32_t flags = 0; flags <= PTRACE_PEEKSIGINFO_SHARED; flags++) {
        struct __ptrace_peeksiginfo_args args = {.flags = flags, .nr = 16};
        long count = ptrace(PTRACE_PEEKSIGINFO, stop->choice->tid, &args, waiting);
        for (long i = 0; i < count; i++)
            if (!(stop->mask >> (waiting[i].si_signo - 1) & 1))
                return true;
    }
    return false;
}

/*
 * Repeat a call that only our stop has ended, by EINTR.  No thread is chosen in such a call, but on
 * a busy machine it may enter one after it was chosen.  The thread does not notice, except that a
 * time limit starts again.  False: there is nothing to repeat, or a signal ended the call.
 */
static bool repeat_call(struct stop *stop)
{
    const struct prb_inject_arch *arch = stop->arch;
    uint64_t *saved = stop->saved;
    if (!prb_in_syscall(arch, saved) || (int64_t)saved[arch->result] != -EINTR ||
        !is_fragile(arch, (int64_t)saved[arch->original]) || signal_waits(stop))
        return false;
    saved[arch->pc] -= arch->syscall_len;
    saved[arch->number] = saved[arch->original];
    saved[arch->original] = (uint64_t)-1;
    set_registers(stop, saved);
    return true;
}

/* Whether it is where it was when it was chosen; a running one is examined only now. */
static enum prb_unfit judge(struct stop *stop)
{
    const struct prb_inject_arch *arch = stop->arch;
    const struct prb_syscall *call = &stop->choice->call;
    const uint64_t *saved = stop->saved;
    if (stop->choice->running) {
        uint64_t args[6];
        for (unsigned i = 0; i < 6; i++)
            args[i] = saved[arch->args[i]];
        /* Where the kernel does not say which call it is in: the last one. */
        unsigned number = arch->original < 0 ? arch->number : (unsigned)arch->original;
        if ((arch->original < 0 || prb_in_syscall(arch, saved)) &&
            (int64_t)saved[number] == arch->waits[0].number && prb_waits_for_lock(args))
            return PRB_UNFIT_LOCK;
        if (arch->all_is_saved && !arch->all_is_saved(stop->choice->tid))
            return PRB_UNFIT_RUNNING;
        struct prb_registers registers;
        if (!prb_arch_registers(prb_arch_host(), saved, arch->words * sizeof *saved, &registers,
                                &stop->err))
            return PRB_UNFIT_PLACE;
        enum prb_unfit why = prb_stack_scan(stop->chooser, &registers);
        return why == PRB_UNFIT_STACK && stop->chooser->unwind_stopped
                   ? prb_stack_unwound(stop->chooser, &registers)
                   : why;
    }
    bool same = saved[arch->sp] == call->sp && saved[arch->pc] + arch->pc_goes_back == call->pc &&
                (arch->original < 0 || (int64_t)saved[arch->original] == call->number);
    return same ? PRB_FIT : PRB_UNFIT_MOVED;
}

/*
 * Where a remote call returns to should we die during it: the thread's own state, stored below the
 * red zone of its stack, as the kernel does for a signal handler.  False: there is no room.
 */
static bool throw_lifeline(struct stop *stop)
{
    const struct prb_inject_arch *arch = stop->arch;
    const struct prb_addresses *addresses = stop->chooser->addresses;
    pid_t pid = prb_proc_pid(stop->chooser->proc);
    if (!arch->lifeline || !addresses->syscall_return || !addresses->signal_return)
        return true;
    uint8_t code[PRB_SYSCALL_BEFORE] = {0};
    prb_addr pc = stop->saved[arch->pc], sp = stop->saved[arch->sp];
    prb_addr extended_at = (sp - arch->red_zone - stop->extended_len - 8) & ~UINT64_C(63);
    prb_mem_read_some(stop->chooser->mem, pc - sizeof code, code, sizeof code);
    memcpy(stop->below, stop->extended, stop->extended_len);
    size_t len = arch->lifeline(stop->saved, code, stop->below, stop->extended_len, extended_at,
                                stop->mask, stop->frame);
    prb_addr frame_at = (extended_at - len) & ~UINT64_C(15);
    uint64_t back = addresses->signal_return;
    struct iovec local[] = {
        {&back, sizeof back}, {stop->frame, len}, {stop->below, stop->extended_len + 8}};
    struct iovec remote[] = {{(void *)(frame_at - sizeof back), sizeof back},
                             {(void *)frame_at, len},
                             {(void *)extended_at, stop->extended_len + 8}};
    size_t wanted = sizeof back + len + stop->extended_len + 8;
    if (!prb_stack_below(stop->chooser, sp, sp - frame_at + sizeof back) ||
        process_vm_writev(pid, local, 3, remote, 3, 0) != (ssize_t)wanted)
        return false;
    stop->lifeline = frame_at - sizeof back;
    return true;
}

static bool map_memory(struct stop *stop, enum event *event_out, int64_t *result_out)
{
    uint64_t may = PROT_READ | PROT_WRITE | (stop->arch->mprotect ? 0 : PROT_EXEC);
    const uint64_t len = 2 * stop->arch->apart + SCRATCH_LEN;
    const uint64_t args[6] = {0, len, may, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0};
    *event_out = remote_call(stop, stop->arch->mmap, args, result_out);
    if (*event_out != EVENT_SYSCALL || *result_out < 0)
        return false;
    stop->borrowed->base = (prb_addr)*result_out;
    stop->borrowed->len = len;
    stop->borrowed->page = stop->borrowed->base + stop->arch->apart;
    return true;
}

/* Addresses of the parts of our mapping. */
static prb_addr extended_at(const struct stop *stop)
{
    return stop->borrowed->page + stop->arch->apart;
}
static prb_addr frame_at(const struct stop *stop) { return extended_at(stop) + PRB_XSTATE_MAX; }
static prb_addr stack_at(const struct stop *stop)
{
    return stop->borrowed->base + stop->borrowed->len - 64;
}

/* Only a successful write proves that the memory exists, whatever mmap(2) returned. */
static bool write_orders(struct stop *stop)
{
    const struct prb_inject_arch *arch = stop->arch;
    struct prb_stub_page *page = &stop->page;
    prb_addr at = stop->borrowed->page;
    page->scratch = extended_at(stop);
    page->scratch_len = SCRATCH_LEN;
    page->call.how = (const char *)(uintptr_t)(at + offsetof(struct prb_stub_page, how));
    page->call.settings =
        page->settings[0] ? (const char *)(uintptr_t)(at + offsetof(struct prb_stub_page, settings))
                          : NULL;
    size_t frame_len = arch->go_back(stop->saved, stop->extended, stop->extended_len,
                                     extended_at(stop), page, at, stop->frame, frame_at(stop));
    struct iovec local[] = {{(void *)arch->stub, arch->stub_len},
                            {page, sizeof *page},
                            {stop->extended, stop->extended_len + 8},
                            {stop->frame, frame_len}};
    struct iovec remote[] = {{(void *)stop->borrowed->base, arch->stub_len},
                             {(void *)at, sizeof *page},
                             {(void *)extended_at(stop), stop->extended_len + 8},
                             {(void *)frame_at(stop), frame_len}};
    size_t wanted = arch->stub_len + sizeof *page + stop->extended_len + 8 + frame_len;
    return process_vm_writev(prb_proc_pid(stop->chooser->proc), local, 4, remote, 4, 0) ==
           (ssize_t)wanted;
}

static bool protect_code(struct stop *stop, enum event *event_out, int64_t *result_out)
{
    const uint64_t args[6] = {stop->borrowed->base, stop->arch->apart, PROT_READ | PROT_EXEC};
    if (!stop->arch->mprotect)
        return true;
    *event_out = remote_call(stop, stop->arch->mprotect, args, result_out);
    return *event_out == EVENT_SYSCALL && *result_out == 0;
}

static bool send_off(struct stop *stop)
{
    stop->arch->enter(stop->saved, stop->borrowed->base, stack_at(stop), stop->working);
    if (!set_registers(stop, stop->working))
        return hopeless(stop, PRB_GONE, "the thread ended", 0);
    stop->signal = 0;
    stop->borrowed->clock_let_go = processor_clock();
    if (ptrace(PTRACE_DETACH, stop->choice->tid, NULL, NULL))
        return prb_fail_sys(&stop->err, errno, "cannot release thread %d", (int)stop->choice->tid);
    stop->borrowed->paused_ns = prb_clock_ns() - stop->since;
    stop->borrowed->tid = stop->choice->tid;
    stop->borrowed->by_frame = stop->page.frame != 0;
    stop->borrowed->sent = true;
    return true;
}

static bool in_the_stop(struct stop *stop)
{
    enum event event;
    int64_t result = 0;
    if (!read_state(stop))
        return hopeless(stop, PRB_UNSUPPORTED, "cannot read the thread's registers", 0);
    enum prb_unfit why = repeat_call(stop) ? PRB_UNFIT_CALL : judge(stop);
    if (why != PRB_FIT)
        return another_time(stop, why);
    if (!throw_lifeline(stop))
        return another_time(stop, PRB_UNFIT_PLACE);
    if (!stop->borrowed->base && !map_memory(stop, &event, &result))
        return event == EVENT_SYSCALL ? hopeless(stop, PRB_IO, "map executable memory", result)
                                      : interrupted(stop, event);
    if (!write_orders(stop))
        return hopeless(stop, PRB_FAULT, "the memory that the target mapped does not exist", 0);
    if (!protect_code(stop, &event, &result))
        return event == EVENT_SYSCALL ? hopeless(stop, PRB_IO, "make memory executable", result)
                                      : interrupted(stop, event);
    return send_off(stop);
}

/* Keep the CPU while the thread is stopped, where that is allowed. */
static void hurry(void)
{
    struct sched_param first = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

static bool refused(struct stop *stop, int sys)
{
    pid_t tid = stop->choice->tid, pid = prb_proc_pid(stop->chooser->proc);
    if (sys == ESRCH || (sys == EPERM && prb_task_ending(pid, tid))) {
        stop->borrowed->why = PRB_UNFIT_MOVED;
        return true;
    }
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    char name[48];
    snprintf(name, sizeof name, "task/%d/status", (int)tid);
    if (sys == EPERM && prb_proc_text(stop->chooser->proc, name, &text, NULL)) {
        long long tracer = prb_inject_status(text.data, "TracerPid", 10);
        if (tracer > 0) {
            prb_fail(&stop->err, PRB_BUSY, "thread %d of process %d is traced by process %lld",
                     (int)tid, (int)pid, tracer);
            return prb_error_remedy(&stop->err, "Detach that debugger or strace first");
        }
    }
    return prb_permission_explain(&stop->err, pid, sys, "stop a thread of");
}

static void *stop_main(void *argument)
{
    struct stop *stop = argument;
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    stop->apart = stay_off(stop->choice->cpu);
    if (!stop->apart)
        stay_on(stop->choice->cpu);
    hurry();
    pid_t tid = stop->choice->tid;
    struct prb_syscall call;
    if (stop->choice->running && !stop->chooser->stopped &&
        prb_proc_syscall(stop->chooser->proc, tid, &call, NULL) && !call.running &&
        is_fragile(stop->arch, call.number) && !prb_waiting_call(stop->arch, call.number)) {
        stop->borrowed->why = PRB_UNFIT_CALL;
        return stop;
    }
    if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD))
        return refused(stop, errno) ? stop : NULL;
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
        return interrupted(stop, EVENT_END) ? stop : NULL;
    enum event event = await(stop, true);
    stop->touched = true;
    if (event != EVENT_STOP)
        return interrupted(stop, event) ? stop : NULL;
    return in_the_stop(stop) ? stop : NULL;
}

/* Why a thread does not stop in time. */
static enum prb_unfit what_delays(const struct stop *stop)
{
    char path[64];
    struct prb_stat stat;
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)prb_proc_pid(stop->chooser->proc),
             (int)stop->choice->tid);
    if (!prb_stat_of(path, &stat))
        return PRB_UNFIT_MOVED;
    /* Our interrupt has woken it, unless it waits for a disk, say. */
    return stat.state == 'R' || stat.state == 'S' ? PRB_UNFIT_NO_CPU : PRB_UNFIT_STATE;
}

/* Wait for the tracer; cancel it when its thread does not stop, which releases the thread.  Signals
 * are blocked until then.  But a target can hang in a remote call (on a page that it fills itself),
 * and then signals are let through, so that the user can end us. */
static bool join(struct stop *stop, pthread_t tracer, const sigset_t *signals)
{
    void *good;
    enum prb_unfit why = PRB_UNFIT_STATE;
    bool done = prb_join_within(tracer, FIRST_STOP_NS, &good);
    if (!done && !stop->touched) {
        why = what_delays(stop);
        pthread_cancel(tracer);
    }
    if (!done && !prb_join_within(tracer, LONGEST_STOP_NS, &good)) {
        pthread_sigmask(SIG_SETMASK, signals, NULL);
        pthread_join(tracer, &good);
    }
    pthread_sigmask(SIG_SETMASK, signals, NULL);
    if (good == PTHREAD_CANCELED)
        stop->borrowed->why = why;
    return good != NULL;
}

bool prb_borrow(struct prb_chooser *chooser, const struct prb_choice *choice,
                const struct prb_stub_page *page, struct prb_borrowed *borrowed,
                struct prb_error *err)
{
    void *room;
    if (posix_memalign(&room, 64, sizeof(struct stop)))
        return prb_nomem(err);
    PRB_AUTO_FREE struct stop *stop = memset(room, 0, sizeof *stop);
    stop->chooser = chooser;
    stop->arch = chooser->addresses->arch;
    stop->choice = choice;
    stop->borrowed = borrowed;
    borrowed->sent = false; /* before the tracer starts: it may finish at once */
    stop->page = *page;
    borrowed->stopped = chooser->stopped;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t tracer;
    uint64_t time = prb_clock_ns();
    uint64_t clock = processor_clock();
    int failed = pthread_create(&tracer, NULL, stop_main, stop);
    if (failed) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return prb_fail_sys(err, failed, "cannot start a thread");
    }
    bool good = join(stop, tracer, &before);
    time = prb_clock_ns() - time;
    borrowed->clock_hz = time ? (double)(processor_clock() - clock) * 1e9 / (double)time : 0;
    if (!good && err)
        *err = stop->err;
    return good;
}
