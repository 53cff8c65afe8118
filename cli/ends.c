/* What ends a command, as a descriptor (ends.h). */
#include "cli/ends.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/syscalls.h"

int prb_take_ends(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &ends, NULL) != 0)
        return -1;
    return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool pass_on(pid_t child, int ends)
{
    struct signalfd_siginfo info;
    bool any = false;
    while (read(ends, &info, sizeof info) == sizeof info) {
        any = true;
        if (info.ssi_code != SI_KERNEL)
            kill(child, (int)info.ssi_signo);
    }
    return any;
}

static bool has_ended(pid_t child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid;
}

/* Between two checks, where no descriptor reports the end (before Linux 5.3). */
#define LOOK_MS 50

bool prb_await_child(pid_t child, int ends, double seconds, bool *signalled)
{
    PRB_AUTO_FD int process = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd fds[] = {{.fd = process, .events = POLLIN}, {.fd = ends, .events = POLLIN}};
    int wait_ms = seconds >= 0 ? (int)(seconds * 1e3) : process >= 0 ? -1 : LOOK_MS;
    bool any = false, over = false;
    while (!over) {
        int ready = poll(fds, 2, wait_ms);
        if (ready > 0 && fds[1].revents)
            any |= pass_on(child, ends);
        over = ready >= 0 && (seconds >= 0 || has_ended(child));
    }
    if (signalled)
        *signalled = any;
    return has_ended(child);
}
