/* What a kernel thread does at a sample (activity.h). */
#include "sample/activity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define FD_MAX 512 /* a descriptor above is closed again: the user's limit may be 1024 */

void prb_activity_init(struct prb_activity *activity, pid_t pid, pid_t tid)
{
    *activity = (struct prb_activity){.pid = pid, .tid = tid, .fd = -1, .call_fd = -1};
}

static void forget(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void prb_activity_deinit(struct prb_activity *activity)
{
    forget(&activity->fd);
    forget(&activity->call_fd);
}

/* The thread's file of that name, NUL-terminated. */
static bool read_text(const struct prb_activity *activity, const char *name, int *fd, char *text,
                      size_t size)
{
    if (*fd < 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)activity->pid, (int)activity->tid,
                 name);
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t n = *fd >= 0 ? pread(*fd, text, size - 1, 0) : -1;
    if (*fd > FD_MAX)
        forget(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool read_times(struct prb_activity *activity, uint64_t *run_ns, uint64_t *delay_ns,
                       uint64_t *turns)
{
    char text[96];
    if (!read_text(activity, "schedstat", &activity->fd, text, sizeof text))
        return false;
    char *at = text;
    *run_ns = strtoull(at, &at, 10);
    *delay_ns = strtoull(at, &at, 10);
    *turns = strtoull(at, &at, 10);
    return true;
}

static void look_at_call(struct prb_activity *activity)
{
    struct prb_syscall call = {.running = true};
    char text[256];
    if (read_text(activity, "syscall", &activity->call_fd, text, sizeof text))
        prb_syscall_parse(text, &call);
    activity->waits = !call.running;
    if (activity->waits)
        forget(&activity->call_fd); /* it is seldom read now */
    activity->call = call.number;
    activity->sp = call.sp;
    activity->argument = call.args[0];
}

bool prb_activity_read(struct prb_activity *activity, bool state)
{
    uint64_t run_ns = 0, delay_ns = 0, turns = 0;
    if (!read_times(activity, &run_ns, &delay_ns, &turns)) {
        if (state)
            look_at_call(activity);
        activity->used_ns = activity->delayed_ns = 0;
        return false;
    }
    bool stood = activity->known && activity->waits && run_ns == activity->run_ns &&
                 turns == activity->turns;
    activity->used_ns =
        activity->known && run_ns > activity->run_ns ? run_ns - activity->run_ns : 0;
    activity->delayed_ns =
        activity->known && delay_ns > activity->delay_ns ? delay_ns - activity->delay_ns : 0;
    activity->run_ns = run_ns;
    activity->delay_ns = delay_ns;
    activity->turns = turns;
    if (state && !stood)
        look_at_call(activity);
    else if (!stood)
        activity->waits = false;
    activity->known = true;
    return true;
}

/* The system calls in which programs spend their time. */
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

const char *prb_system_call_name(int64_t call, char buffer[32])
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == call)
            return calls[i].name;
    if (call < 0)
        return "the kernel"; /* a page fault, a stop */
    snprintf(buffer, 32, "system call %lld", (long long)call);
    return buffer;
}
