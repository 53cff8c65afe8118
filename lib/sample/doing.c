/* What a kernel thread does at a sample (doing.h). */
#include "sample/doing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define FD_MAX 512 /* a descriptor above is not kept: the user's limit may be 1024 */

void prb_doing_init(struct prb_doing *doing, pid_t pid, pid_t tid)
{
    *doing = (struct prb_doing){.pid = pid, .tid = tid, .fd = -1};
}

void prb_doing_deinit(struct prb_doing *doing)
{
    if (doing->fd >= 0)
        close(doing->fd);
    doing->fd = -1;
}

static bool read_times(struct prb_doing *doing, uint64_t *run_ns, uint64_t *turns)
{
    char text[96];
    if (doing->fd < 0) {
        snprintf(text, sizeof text, "/proc/%d/task/%d/schedstat", (int)doing->pid, (int)doing->tid);
        doing->fd = open(text, O_RDONLY | O_CLOEXEC);
    }
    ssize_t n = doing->fd >= 0 ? pread(doing->fd, text, sizeof text - 1, 0) : -1;
    if (doing->fd > FD_MAX)
        prb_doing_deinit(doing);
    if (n <= 0)
        return false;
    text[n] = '\0';
    char *at = text;
    *run_ns = strtoull(at, &at, 10);
    (void)strtoull(at, &at, 10); /* time it waited for a processor */
    *turns = strtoull(at, &at, 10);
    return true;
}

static void look_at_call(struct prb_doing *doing, struct prb_proc *proc)
{
    struct prb_syscall call = {.running = true};
    if (!prb_proc_syscall(proc, doing->tid, &call, NULL))
        call.running = true;
    doing->waits = !call.running;
    doing->call = call.number;
    doing->sp = call.sp;
    doing->argument = call.args[0];
}

bool prb_doing_look(struct prb_doing *doing, struct prb_proc *proc, bool state)
{
    uint64_t run_ns = 0, turns = 0;
    if (!read_times(doing, &run_ns, &turns)) {
        if (state)
            look_at_call(doing, proc);
        doing->used_ns = 0;
        return false;
    }
    bool stood = doing->known && doing->waits && run_ns == doing->run_ns && turns == doing->turns;
    doing->used_ns = doing->known && run_ns > doing->run_ns ? run_ns - doing->run_ns : 0;
    doing->run_ns = run_ns;
    doing->turns = turns;
    if (state && !stood)
        look_at_call(doing, proc);
    doing->known = true;
    return true;
}

/* Those in which the threads of programs spend their time. */
static const struct {
    int number;
    const char *name;
} calls[] = {
    {SYS_futex, "futex"},
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"},
#ifdef SYS_poll
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_epoll_wait, "epoll_wait"},
#endif
#ifdef SYS_futex_waitv
    {SYS_futex_waitv, "futex_waitv"},
#endif
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_flock, "flock"},
    {SYS_openat, "openat"},
    {SYS_ioctl, "ioctl"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_munmap, "munmap"},
    {SYS_mmap, "mmap"},
    {SYS_madvise, "madvise"},
#ifdef SYS_pause
    {SYS_pause, "pause"},
#endif
};

const char *prb_call_name(int64_t call, char buffer[32])
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == call)
            return calls[i].name;
    if (call < 0)
        return "the kernel"; /* a page fault, a stop */
    snprintf(buffer, 32, "system call %lld", (long long)call);
    return buffer;
}
