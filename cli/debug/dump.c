/*
 * probing debug --dump --to-target: the stacks, written where the process writes its own log.  Its
 * standard error is duplicated from outside (pidfd_getfd(2)), so the process runs no code for it,
 * and a hung one gets them, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/syscalls.h"
#include "cli/debug/dump.h"
#include "cli/look/stacks.h"
#include "cli/print/out.h"

#define WRITE_SECONDS 5 /* for a pipe whose reader does not read */
#define PIECE 4096      /* PIPE_BUF: what a pipe that is ready takes without blocking */

/* The target's standard error; -1 with err. */
static int open_error_stream(pid_t pid, struct prb_error *err)
{
    char path[40];
    PRB_AUTO_FD int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, STDERR_FILENO, 0);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, STDERR_FILENO);
    /* Before Linux 5.6.  Sockets do not open so. */
    if (errno == ENOSYS && (fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC)) >= 0)
        return fd;
    int sys = errno;
    if (sys == EBADF || sys == ENOENT)
        prb_cli_fail(err, PRB_NOT_FOUND, "", "process %d has closed its standard error", (int)pid);
    else
        prb_cli_fail(err, sys == ESRCH ? PRB_GONE : PRB_PERMISSION,
                     "the user of the process, or root, may",
                     "the standard error of process %d: %s", (int)pid, strerror(sys));
    return -1;
}

static int milliseconds_left(double until)
{
    double left = until - prb_clock_s();
    return left > 0 ? (int)(left * 1e3) : 0;
}

static bool write_all(int fd, const char *text, size_t length, struct prb_error *err)
{
    double until = prb_clock_s() + WRITE_SECONDS;
    for (size_t done = 0; done < length;) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        int polled = poll(&ready, 1, milliseconds_left(until));
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled == 0)
            return prb_cli_fail(err, PRB_TIMEOUT, "",
                                "nobody reads the process's standard error: %zu of %zu bytes were "
                                "written",
                                done, length);
        size_t piece = length - done < PIECE ? length - done : PIECE;
        ssize_t wrote = write(fd, text + done, piece);
        if (wrote < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (wrote < 0)
            return prb_cli_fail(err, PRB_IO, "", "the process's standard error: %s",
                                strerror(errno));
        done += (size_t)wrote;
    }
    return true;
}

static bool print(const struct prb_run *run, struct prb_target *target, char **text_out,
                  size_t *length_out, struct prb_error *err)
{
    const struct prb_stack_options plain = {0};
    const struct prb_stacks_style style = {.verbose = run->verbose};
    struct prb_stacks *stacks = prb_stacks_take(target, &plain, err);
    if (!stacks)
        return false;
    FILE *out = open_memstream(text_out, length_out);
    bool good = out && fputs("probing: the stacks, as somebody asked for them\n", out) >= 0 &&
                prb_stacks_print(stacks, &style, out, err);
    prb_stacks_free(stacks);
    if (!out || fclose(out) != 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    return good;
}

bool prb_dump_to_target(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t length = 0;
    PRB_AUTO(prb_target) struct prb_target *target = prb_run_open(run, err);
    if (!target)
        return false;
    pid_t pid = prb_target_info(target)->pid;
    if (prb_target_info(target)->kind != PRB_TARGET_PROCESS)
        return prb_usage(run, err, "--to-target: a core or snapshot writes no log");
    PRB_AUTO_FD int fd = open_error_stream(pid, err);
    if (fd < 0)
        return false;
    prb_out_color("never");
    signal(SIGPIPE, SIG_IGN);
    if (!print(run, target, &text, &length, err) || !write_all(fd, text, length, err))
        return false;
    printf("written to the standard error of process %d: %zu bytes\n", (int)pid, length);
    return true;
}
