/*
 * What seccomp filters allow, by running them: root may read the filters of a stopped thread
 * (ptrace(2), PTRACE_SECCOMP_GET_FILTER).  Each is a small program over the number and the
 * arguments of a system call (seccomp(2), bpf(4)), run here for every call that a probe makes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/clock.h"
#include "inject/enter/steps.h"

#define FILTERS_MAX 16
#define STOP_NS 1000000000 /* give up when it did not stop by then: it may wait for a CPU */
#define LOOK_NS 50000

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* ---- the system calls of loading and running a probe ---- */

#define EXEC (PROT_READ | PROT_EXEC)
#define THREAD 0x3d0f00 /* the flags with which pthread_create(3) calls clone(2) */

static const struct {
    int number;
    bool optional; /* may fail: there is another way, or we can do without */
    uint64_t args[6];
} calls[] = {
    {SYS_mmap, false, {0, 4096, EXEC, MAP_PRIVATE, 3}},
    {SYS_mmap, false, {0, 4096, EXEC | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1}},
    {SYS_mmap, false, {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3}},
    {SYS_mprotect, false, {0, 4096, EXEC}},
    {SYS_mprotect, false, {0, 4096, PROT_READ | PROT_WRITE}},
    {SYS_clone, false, {THREAD}},
    {SYS_clone3, true, {0, 88}},
    {SYS_socket, false, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK}},
    {SYS_prctl, true, {15}}, /* PR_SET_NAME */
    {SYS_memfd_create, true, {0, 3}},
    {SYS_munmap, false, {0}},
    {SYS_madvise, true, {0}},
    {SYS_brk, false, {0}},
    {SYS_openat, false, {(uint64_t)-100}},
    {SYS_read, false, {3}},
    {SYS_pread64, false, {3}},
    {SYS_write, false, {3}},
    {SYS_close, false, {3}},
    {SYS_fstat, false, {3}},
    {SYS_newfstatat, false, {(uint64_t)-100}},
    {SYS_getdents64, false, {3}},
    {SYS_fcntl, true, {3, F_GETFL}}, /* of opendir(3) */
    {SYS_ftruncate, true, {3, 4096}},
    {SYS_process_vm_readv, true, {1, 4096, 1, 4096, 1, 0}},
    {SYS_faccessat, true, {(uint64_t)-100, 4096, X_OK}},
    {SYS_mkdirat, false, {(uint64_t)-100}},
    {SYS_unlinkat, false, {3}},
    {SYS_fchmod, false, {3, 0600}},
    {SYS_bind, false, {3}},
    {SYS_listen, false, {3, 64}},
    {SYS_accept4, false, {3}},
    {SYS_connect, false, {3}},
    {SYS_getsockopt, false, {3, SOL_SOCKET, SO_PEERCRED}},
    {SYS_sendto, false, {3}},
    {SYS_recvfrom, false, {3}},
    {SYS_ppoll, false, {0}},
    {SYS_eventfd2, false, {0}},
    {SYS_futex, false, {0}},
    {SYS_rt_sigprocmask, false, {2}},
    {SYS_rt_sigaction, false, {SIGSEGV}},
    {SYS_rt_sigreturn, false, {0}},
    {SYS_sigaltstack, false, {0}},
    {SYS_clock_nanosleep, false, {0}},
    {SYS_nanosleep, false, {0}},
    {SYS_set_robust_list, false, {0, 24}},
    {SYS_rseq, true, {0, 32}},
    {SYS_getrandom, true, {0}},
    {SYS_getpid, false, {0}},
    {SYS_gettid, false, {0}},
    {SYS_geteuid, false, {0}},
    {SYS_exit, false, {0}},
#ifdef SYS_poll
    {SYS_poll, false, {0}},
    {SYS_mkdir, false, {0, 0700}},
    {SYS_access, true, {4096, X_OK}},
#endif
};

/* ---- one filter ---- */

struct program {
    struct sock_filter *steps;
    unsigned count;
};

static uint32_t calculate(unsigned operation, uint32_t a, uint32_t b)
{
    switch (operation) {
    case BPF_ADD:
        return a + b;
    case BPF_SUB:
        return a - b;
    case BPF_MUL:
        return a * b;
    case BPF_DIV:
        return b ? a / b : 0;
    case BPF_AND:
        return a & b;
    case BPF_OR:
        return a | b;
    case BPF_XOR:
        return a ^ b;
    case BPF_LSH:
        return b < 32 ? a << b : 0;
    case BPF_RSH:
        return b < 32 ? a >> b : 0;
    default:
        return -a; /* BPF_NEG */
    }
}

static bool jumps(unsigned operation, uint32_t a, uint32_t b)
{
    return operation == BPF_JEQ   ? a == b
           : operation == BPF_JGT ? a > b
           : operation == BPF_JGE ? a >= b
                                  : (a & b) != 0; /* BPF_JSET */
}

/* The filter's answer.  Jumps only lead forward, so it ends.  An invalid filter kills. */
static uint32_t answer(const struct program *filter, const struct seccomp_data *data)
{
    uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = {0};
    for (unsigned at = 0; at < filter->count; at++) {
        const struct sock_filter *step = &filter->steps[at];
        uint32_t k = step->k, b = step->code & BPF_X ? x : k;
        switch (BPF_CLASS(step->code)) {
        case BPF_RET:
            return BPF_RVAL(step->code) == BPF_A ? a : k;
        case BPF_LD:
        case BPF_LDX: {
            uint32_t value = k; /* BPF_IMM */
            if (BPF_MODE(step->code) == BPF_MEM)
                value = memory[k % BPF_MEMWORDS];
            else if (BPF_MODE(step->code) == BPF_LEN)
                value = sizeof *data;
            else if (BPF_MODE(step->code) == BPF_ABS && k <= sizeof *data - sizeof value)
                memcpy(&value, (const char *)data + k, sizeof value);
            *(BPF_CLASS(step->code) == BPF_LD ? &a : &x) = value;
            break;
        }
        case BPF_ST:
            memory[k % BPF_MEMWORDS] = a;
            break;
        case BPF_STX:
            memory[k % BPF_MEMWORDS] = x;
            break;
        case BPF_ALU:
            a = calculate(BPF_OP(step->code), a, b);
            break;
        case BPF_JMP:
            at += BPF_OP(step->code) == BPF_JA      ? k
                  : jumps(BPF_OP(step->code), a, b) ? step->jt
                                                    : step->jf;
            break;
        default: /* BPF_MISC */
            if (BPF_MISCOP(step->code) == BPF_TAX)
                x = a;
            else
                a = x;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

static bool allows(const struct program *filter)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct seccomp_data data = {.nr = calls[i].number, .arch = ARCHITECTURE};
        memcpy(data.args, calls[i].args, sizeof data.args);
        uint32_t action = answer(filter, &data) & SECCOMP_RET_ACTION_FULL;
        if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG &&
            !(calls[i].optional && action == SECCOMP_RET_ERRNO))
            return false;
    }
    return true;
}

/* ---- reading them ---- */

struct reading {
    pid_t tid;
    struct program programs[FILTERS_MAX];
    unsigned count;
    bool whole;
};

static void read_filters(struct reading *reading)
{
    for (unsigned i = 0; i <= FILTERS_MAX; i++) {
        errno = 0;
        long n = ptrace(PTRACE_SECCOMP_GET_FILTER, reading->tid, (void *)(uintptr_t)i, NULL);
        if (n < 0 || i == FILTERS_MAX || n > BPF_MAXINSNS) {
            reading->whole = n < 0 && errno == ENOENT && i > 0;
            return;
        }
        struct program *program = &reading->programs[i];
        if (ptrace(PTRACE_SECCOMP_GET_FILTER, reading->tid, (void *)(uintptr_t)i, program->steps) !=
            n)
            return;
        program->count = (unsigned)n;
        reading->count = i + 1;
    }
}

/* A thread of our own: when it ends, the kernel releases a thread that did not stop in time. */
static void *stop_and_read(void *context)
{
    struct reading *reading = context;
    uint64_t until = prb_clock_ns() + STOP_NS;
    int status;
    if (ptrace(PTRACE_SEIZE, reading->tid, NULL, NULL) ||
        ptrace(PTRACE_INTERRUPT, reading->tid, NULL, NULL))
        return NULL;
    pid_t came;
    while ((came = waitpid(reading->tid, &status, __WALL | WNOHANG)) == 0 && prb_clock_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    if (came != reading->tid || !WIFSTOPPED(status))
        return NULL;
    bool ours = status >> 16 == PTRACE_EVENT_STOP;
    if (ours)
        read_filters(reading);
    ptrace(PTRACE_DETACH, reading->tid, NULL, (void *)(long)(ours ? 0 : WSTOPSIG(status)));
    return NULL;
}

/* Reading from a pipe or a terminal: with other files a stop may end the call (signal(7): sockets
 * with a time limit, inotify). */
static bool reads_on(pid_t pid, uint64_t descriptor)
{
    char path[64], link[16] = "";
    snprintf(path, sizeof path, "/proc/%d/fd/%llu", (int)pid, (unsigned long long)descriptor);
    return readlink(path, link, sizeof link - 1) > 0 &&
           (strncmp(link, "pipe:", 5) == 0 || strncmp(link, "/dev/", 5) == 0);
}

/* A thread whose call continues after a stop. */
static pid_t one_to_stop(struct prb_proc *proc)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    const struct prb_inject_arch *arch = prb_inject_arch_find(prb_arch_host()->elf_machine);
    if (!arch || !prb_proc_tids(proc, &tasks, NULL))
        return 0;
    for (size_t i = 0; i < tasks.count; i++) {
        struct prb_syscall call;
        pid_t tid = tasks.items[i].tid;
        if (!prb_proc_syscall(proc, tid, &call, NULL) || call.running)
            continue;
        const struct prb_waiting_call *waiting = prb_waiting_call(arch, call.number);
        if (waiting &&
            (waiting->wait == PRB_WAIT_FUTEX || waiting->wait == PRB_WAIT_PLAIN ||
             (waiting->wait == PRB_WAIT_READ && reads_on(prb_proc_pid(proc), call.args[0]))) &&
            prb_seccomp_alike(prb_proc_pid(proc), tid))
            return tid;
    }
    return 0;
}

bool prb_seccomp_filters_allow(struct prb_proc *proc)
{
    struct reading reading = {.tid = one_to_stop(proc)};
    PRB_AUTO_FREE struct sock_filter *room =
        calloc((size_t)FILTERS_MAX * BPF_MAXINSNS, sizeof *room);
    pthread_t reader;
    if (!reading.tid || !room)
        return false;
    for (unsigned i = 0; i < FILTERS_MAX; i++)
        reading.programs[i].steps = room + (size_t)i * BPF_MAXINSNS;
    if (pthread_create(&reader, NULL, stop_and_read, &reading))
        return false;
    pthread_join(reader, NULL);
    for (unsigned i = 0; reading.whole && i < reading.count; i++)
        if (!allows(&reading.programs[i]))
            return false;
    return reading.whole;
}
