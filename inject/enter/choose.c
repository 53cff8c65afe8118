/*
 * Choosing a thread to borrow from /proc, before anything is touched.  It waits in a system call
 * that the kernel restarts (ptrace(2), signal(7)), not for a lock of the C library (arguments of
 * futex(2)), and no word of its stack is a return address into the allocator, the loader or
 * another function that must not be entered twice.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "arch/arch.h"
#include "base/syscalls.h"
#include "inject/enter/steps.h"

const struct prb_waiting_call *prb_waiting_call(const struct prb_inject_arch *arch, int64_t number)
{
    for (size_t i = 0; i < arch->wait_count; i++)
        if (arch->waits[i].number == number)
            return &arch->waits[i];
    return NULL;
}

/* Whether its program counter is in a file's code, not in the kernel's page (vdso). */
static bool in_text(struct prb_chooser *chooser, prb_addr pc)
{
    struct prb_map map;
    return prb_proc_map_from(chooser->proc, pc, true, &map) && map.start <= pc;
}

#define SECOND_LOOK 16 /* ranks after every thread that waits in another call */

/* How well it suits; 0 is best. */
static unsigned rank_of(const struct prb_chooser *chooser, const struct prb_task *task,
                        const struct prb_waiting_call *call)
{
    /* Threads of drivers poll with time limits. */
    static const char *const last[] = {"pt_nccl", "cuda-Evt", "NCCL"};
    unsigned rank = (unsigned)call->wait;
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        if (strncmp(task->comm, last[i], strlen(last[i])) == 0)
            rank += 8;
    return task->tid == prb_proc_pid(chooser->proc) ? rank + 4 : rank;
}

/* ppoll and pselect with a signal mask: the kernel would have to restore the thread's own. */
static bool has_mask(struct prb_chooser *chooser, const struct prb_waiting_call *waiting,
                     const uint64_t args[6])
{
    uint64_t mask = args[3];
    if (waiting->wait == PRB_WAIT_PSELECT && (mask = args[5]) != 0 &&
        !prb_mem_u64(chooser->mem, args[5], &mask, NULL))
        return true;
    return mask != 0;
}

/* Whether a descriptor of the target is a socket with SO_RCVTIMEO, whose calls a stop would end
 * (signal(7)).  Asked of a copy (pidfd_getfd(2), Linux 5.6); false when it cannot be copied. */
static bool has_time_limit(struct prb_chooser *chooser, uint64_t descriptor)
{
    struct timeval limit = {0};
    socklen_t len = sizeof limit;
    PRB_AUTO_FD int process = (int)syscall(SYS_pidfd_open, prb_proc_pid(chooser->proc), 0);
    PRB_AUTO_FD int copy =
        process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, (int)descriptor, 0);
    return copy >= 0 && getsockopt(copy, SOL_SOCKET, SO_RCVTIMEO, &limit, &len) == 0 &&
           (limit.tv_sec || limit.tv_usec);
}

/* Whether a thread that waits in this call may be stopped. */
static enum prb_unfit wait_fit(struct prb_chooser *chooser, const struct prb_waiting_call *waiting,
                               const uint64_t args[6])
{
    switch (waiting->wait) {
    case PRB_WAIT_FUTEX:
        return prb_waits_for_lock(args) ? PRB_UNFIT_LOCK : PRB_FIT;
    case PRB_WAIT_PPOLL:
    case PRB_WAIT_PSELECT:
        return has_mask(chooser, waiting, args) ? PRB_UNFIT_CALL : PRB_FIT;
    case PRB_WAIT_READ:
    case PRB_WAIT_SECOND:
        return has_time_limit(chooser, args[0]) ? PRB_UNFIT_CALL : PRB_FIT;
    default:
        return PRB_FIT;
    }
}

static bool same_call(const struct prb_syscall *a, const struct prb_syscall *b)
{
    return a->running == b->running && a->number == b->number && a->sp == b->sp && a->pc == b->pc &&
           memcmp(a->args, b->args, sizeof a->args) == 0;
}

/* Whether a stopped thread stands at the start of our stub: it was sent by an earlier injection. */
static bool stands_at_stub(struct prb_chooser *chooser, const struct prb_syscall *call)
{
    const struct prb_inject_arch *arch = chooser->addresses->arch;
    PRB_AUTO_FREE uint8_t *code = malloc(arch->stub_len);
    return code && prb_mem_read(chooser->mem, call->pc, code, arch->stub_len, NULL) &&
           memcmp(code, arch->stub, arch->stub_len) == 0;
}

static enum prb_unfit fit(struct prb_chooser *chooser, const struct prb_task *task, unsigned best,
                          unsigned *rank_out, struct prb_syscall *call_out)
{
    struct prb_syscall call, again;
    bool stopped = task->state == 'T';
    if (task->state == 'R')
        return PRB_UNFIT_RUNNING;
    if (task->state != 'S' && !stopped)
        return PRB_UNFIT_STATE;
    if (!prb_proc_syscall(chooser->proc, task->tid, &call, NULL))
        return PRB_UNFIT_MOVED;
    if (call.running)
        return PRB_UNFIT_RUNNING;
    if (stopped && stands_at_stub(chooser, &call))
        chooser->sent = task->tid;
    const struct prb_waiting_call *waiting =
        prb_waiting_call(chooser->addresses->arch, call.number);
    /* When it is stopped, the call has ended already: by EINTR, if it is one that a stop ends. */
    if (!waiting)
        return stopped ? PRB_UNFIT_RUNNING : PRB_UNFIT_CALL;
    enum prb_unfit why = wait_fit(chooser, waiting, call.args);
    if (why != PRB_FIT)
        return why;
    *rank_out = rank_of(chooser, task, waiting);
    if (*rank_out >= best)
        return PRB_UNFIT_COUNT;
    if (!in_text(chooser, call.pc))
        return PRB_UNFIT_PLACE;
    struct prb_registers registers = {0};
    prb_register_set(&registers, prb_arch_host()->sp, call.sp);
    prb_register_set(&registers, prb_arch_host()->pc, call.pc);
    why = prb_stack_scan(chooser, &registers);
    if (why == PRB_UNFIT_STACK && (*rank_out += SECOND_LOOK) < best)
        why = prb_stack_unwound(chooser, &registers);
    if (why != PRB_FIT)
        return why;
    if (!prb_proc_syscall(chooser->proc, task->tid, &again, NULL) || !same_call(&call, &again))
        return PRB_UNFIT_MOVED;
    *call_out = call;
    return PRB_FIT;
}

/* A thread may have installed seccomp(2) filters for itself alone: our calls could get it killed,
 * and the thread that it makes inherits them.  The main thread's filters were checked before. */
static bool is_confined(struct prb_chooser *chooser, pid_t tid)
{
    pid_t pid = prb_proc_pid(chooser->proc);
    return tid != pid && !prb_seccomp_alike(pid, tid);
}

/* Worker threads of the kernel's io_uring are listed, too, but never run the program's code. */
static bool is_kernels(const struct prb_task *task) { return strncmp(task->comm, "iou-", 4) == 0; }

bool prb_choose(struct prb_chooser *chooser, struct prb_choice *out, struct prb_error *err)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    /* Where maps were read for the first round, they are a few milliseconds old. */
    if (chooser->rounds++ > 0)
        prb_proc_forget_maps(chooser->proc);
    if (!prb_proc_tids(chooser->proc, &tasks, err) || !prb_proc_check(chooser->proc, err))
        return false;
    struct prb_choice choice = {0};
    unsigned best = ~0u;
    memset(chooser->unfit, 0, sizeof chooser->unfit);
    chooser->stopped = false;
    chooser->sent = 0;
    size_t running = 0;
    for (size_t i = 0; i < tasks.count && (best > 0 || chooser->stopped); i++) {
        /* The main thread is listed first and tried last. */
        struct prb_task *task = &tasks.items[(i + 1) % tasks.count];
        struct prb_syscall call;
        unsigned rank;
        if (!prb_proc_task_read(chooser->proc, task) || is_kernels(task))
            continue;
        chooser->stopped |= task->state == 'T';
        enum prb_unfit why = fit(chooser, task, best, &rank, &call);
        if (why == PRB_FIT && is_confined(chooser, task->tid))
            why = PRB_UNFIT_CONFINED;
        if (why == PRB_FIT) {
            choice = (struct prb_choice){.tid = task->tid, .cpu = task->cpu, .call = call};
            best = rank;
        } else if (why < PRB_UNFIT_COUNT) {
            chooser->unfit[why]++;
            /* To be examined in a stop: each running thread is as likely. */
            bool look = why == PRB_UNFIT_RUNNING || why == PRB_UNFIT_STACK;
            if (look && (chooser->turn + i) % ++running == 0) {
                chooser->running = *task;
                chooser->running_counted = why;
            }
        }
    }
    if (chooser->sent)
        return false;
    if (!choice.tid && running) {
        chooser->turn++;
        if (is_confined(chooser, chooser->running.tid)) {
            chooser->unfit[chooser->running_counted]--;
            chooser->unfit[PRB_UNFIT_CONFINED]++;
            return false;
        }
        choice = (struct prb_choice){.tid = chooser->running.tid,
                                     .cpu = chooser->running.cpu,
                                     .running = true,
                                     .counted = chooser->running_counted};
    }
    if (!choice.tid)
        return false;
    *out = choice;
    return true;
}

void prb_choose_explain(const struct prb_chooser *chooser, char *out, size_t size)
{
    static const char *const reasons[PRB_UNFIT_COUNT] = {
        [PRB_UNFIT_RUNNING] = "running",
        [PRB_UNFIT_STATE] = "in uninterruptible sleep (D) or ending",
        [PRB_UNFIT_CALL] = "in a system call that a stop would end (epoll_wait, sigwait, recv with "
                           "a time limit, ...)",
        [PRB_UNFIT_LOCK] = "waiting for a lock of the C library",
        [PRB_UNFIT_STACK] = "inside",
        [PRB_UNFIT_PLACE] = "on a stack of its own making",
        [PRB_UNFIT_MOVED] = "never still",
        [PRB_UNFIT_SIGNAL] = "flooded with signals",
        [PRB_UNFIT_CONFINED] = "under a seccomp filter of its own",
        [PRB_UNFIT_NO_CPU] = "ready to run and given no CPU",
    };
    size_t used = 0;
    *out = '\0';
    for (unsigned why = 1; why < PRB_UNFIT_COUNT; why++) {
        if (!chooser->unfit[why] || used >= size)
            continue;
        const char *where = why == PRB_UNFIT_STACK && chooser->danger ? chooser->danger->what : "";
        int n = snprintf(out + used, size - used, "%s%u %s%s%s", used ? ", " : "",
                         chooser->unfit[why], reasons[why], *where ? " " : "", where);
        used += n > 0 ? (size_t)n : 0;
    }
}
