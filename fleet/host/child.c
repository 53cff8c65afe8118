/* The host's side of a rank's child: child.h. */
#include "fleet/host/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/error.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "fleet/host/starter.h"

#define READ_MOST ((size_t)1 << 20) /* at a time */
#define END_MS 10

void prb_fleet_child_leave(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    prb_close_descriptors(3, (unsigned)fd - 1);
    prb_close_descriptors((unsigned)fd + 1, UINT_MAX);
}

void prb_fleet_child_live(const struct prb_fleet_member *member, int fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    signal(SIGPIPE, SIG_IGN);
    prb_fleet_child_leave(fd);
    prb_fleet_child_serve(member, fd);
    _exit(0);
}

static pid_t fork_child(const struct prb_fleet_member *member, int fd, struct prb_error *err)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        prb_fleet_child_live(member, fd, parent);
    if (pid < 0)
        prb_fail_sys(err, errno, "fork");
    return pid;
}

bool prb_fleet_child_start(struct prb_fleet_child *child, struct prb_error *err)
{
    int pair[2];
    if (child->pid)
        return true;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return prb_fail_sys(err, errno, "socketpair");
    child->started = prb_fleet_starter_is_there();
    pid_t pid = child->started ? prb_fleet_starter_start(&child->member, pair[1], err) : 0;
    if (!pid && !prb_fleet_starter_is_there()) { /* better than never an answer again */
        child->started = false;
        pid = fork_child(&child->member, pair[1], err);
    }
    close(pair[1]);
    if (pid <= 0) {
        close(pair[0]);
        return false;
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    child->pid = pid;
    child->fd = pair[0];
    return true;
}

/* One that the kernel holds in a read ends later, and is then waited for by nobody but init, or with
 * the next one. */
bool prb_fleet_child_wait(pid_t pid)
{
    PRB_AUTO_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0u);
    struct pollfd end = {.fd = fd, .events = POLLIN}; /* without one a pause, Linux before 5.3 */
    for (int left = END_MS; waitpid(pid, NULL, WNOHANG) == 0; left--) {
        if (!left)
            return false;
        poll(&end, 1, 1);
    }
    return true;
}

void prb_fleet_child_end(struct prb_fleet_child *child)
{
    if (child->pid)
        close(child->fd);
    if (child->pid && child->started)
        prb_fleet_starter_kill(child->pid);
    else if (child->pid && kill(child->pid, SIGKILL) == 0)
        prb_fleet_child_wait(child->pid);
    prb_buf_deinit(&child->in);
    child->pid = 0;
    child->fd = -1;
    child->asked = child->answered = false;
}

void prb_fleet_children_end(struct prb_fleet_child *children, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (children[i].pid && !children[i].started)
            kill(children[i].pid, SIGKILL);
    for (size_t i = 0; i < count; i++)
        prb_fleet_child_end(&children[i]);
}

bool prb_fleet_child_ask(struct prb_fleet_child *child, const char *text, size_t len,
                         struct prb_error *err)
{
    uint64_t size = len;
    PRB_AUTO(prb_buf) struct prb_buf message = {0};
    prb_buf_add(&message, &size, sizeof size);
    prb_buf_add(&message, text, len);
    prb_buf_deinit(&child->in);
    child->asked = child->answered = false;
    if (!prb_buf_ok(&message))
        return prb_nomem(err);
    /* It waits for us, so its end of the socket is empty, and takes the whole. */
    ssize_t sent = send(child->fd, message.data, message.len, MSG_NOSIGNAL);
    if (sent != (ssize_t)message.len)
        return prb_fail(err, PRB_IO, "the process that looks at rank %d takes no question",
                        child->member.rank);
    child->asked = true;
    return true;
}

bool prb_fleet_child_read(struct prb_fleet_child *child, struct prb_error *err)
{
    for (;;) {
        uint64_t size = 0;
        ssize_t got = prb_buf_read_some(&child->in, child->fd, READ_MOST);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (got <= 0)
            return prb_fail(err, PRB_INTERNAL, "the process that looks at it ended");
        if (child->in.len < sizeof size)
            continue;
        memcpy(&size, child->in.data, sizeof size);
        if (size > PRB_FLEET_REPLY_MAX || child->in.len > size + sizeof size)
            return prb_fail(err, PRB_CORRUPT, "the process that looks at it sent too much");
        if (child->in.len == size + sizeof size)
            return (child->answered = true);
    }
}
