/* What a kernel thread does at a sample (doing.h). */
#include "sample/doing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define FD_MAX 512 /* a descriptor above is not kept: the user's limit may be 1024 */

void prb_doing_init(struct prb_doing *doing, pid_t pid, pid_t tid)
{
    *doing = (struct prb_doing){.pid = pid, .tid = tid, .fd = -1, .call_fd = -1};
}

static void forget(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void prb_doing_deinit(struct prb_doing *doing)
{
    forget(&doing->fd);
    forget(&doing->call_fd);
}

/* The thread's file of that name, NUL-terminated. */
static bool read_text(const struct prb_doing *doing, const char *name, int *fd, char *text,
                      size_t size)
{
    if (*fd < 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)doing->pid, (int)doing->tid, name);
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t n = *fd >= 0 ? pread(*fd, text, size - 1, 0) : -1;
    if (*fd > FD_MAX)
        forget(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool read_times(struct prb_doing *doing, uint64_t *run_ns, uint64_t *delay_ns,
                       uint64_t *turns)
{
    char text[96];
    if (!read_text(doing, "schedstat", &doing->fd, text, sizeof text))
        return false;
    char *at = text;
    *run_ns = strtoull(at, &at, 10);
    *delay_ns = strtoull(at, &at, 10);
    *turns = strtoull(at, &at, 10);
    return true;
}

static void look_at_call(struct prb_doing *doing)
{
    struct prb_syscall call = {.running = true};
    char text[256];
    if (read_text(doing, "syscall", &doing->call_fd, text, sizeof text))
        prb_syscall_parse(text, &call);
    doing->waits = !call.running;
    if (doing->waits)
        forget(&doing->call_fd); /* it is seldom asked now */
    doing->call = call.number;
    doing->sp = call.sp;
    doing->argument = call.args[0];
}

bool prb_doing_look(struct prb_doing *doing, bool state)
{
    uint64_t run_ns = 0, delay_ns = 0, turns = 0;
    if (!read_times(doing, &run_ns, &delay_ns, &turns)) {
        if (state)
            look_at_call(doing);
        doing->used_ns = doing->delayed_ns = 0;
        return false;
    }
    bool stood = doing->known && doing->waits && run_ns == doing->run_ns && turns == doing->turns;
    doing->used_ns = doing->known && run_ns > doing->run_ns ? run_ns - doing->run_ns : 0;
    doing->delayed_ns = doing->known && delay_ns > doing->delay_ns ? delay_ns - doing->delay_ns : 0;
    doing->run_ns = run_ns;
    doing->delay_ns = delay_ns;
    doing->turns = turns;
    if (state && !stood)
        look_at_call(doing);
    else if (!stood)
        doing->waits = false;
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
