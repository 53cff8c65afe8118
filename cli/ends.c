/* What ends a command, as a descriptor (ends.h). */
#include "cli/ends.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

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

bool prb_await_child(pid_t child, int ends, double seconds, bool *signalled)
{
    PRB_AUTO_FD int process = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd fds[] = {{.fd = process, .events = POLLIN}, {.fd = ends, .events = POLLIN}};
    bool any = false;
    while (process >= 0) {
        int ready = poll(fds, 2, seconds < 0 ? -1 : (int)(seconds * 1e3));
        if (ready > 0 && fds[1].revents)
            any |= pass_on(child, ends);
        if (ready >= 0 && (fds[0].revents || seconds >= 0))
            break;
    }
    if (signalled)
        *signalled = any;
    return process < 0 || fds[0].revents;
}
