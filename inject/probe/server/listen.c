/*
 * The socket's mode is the first wall, the peer's credentials are the second (unix(7), SO_PEERCRED:
 * those at the time of connect(2), as this process's user namespace sees them).
 */
#include "inject/probe/server/listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "inject/probe/libc.h"
#include "inject/probe/log.h"
#include "inject/probe/own_fds.h"
#include "inject/probe/server/message.h"
#include "inject/probe/server/server.h"

#define BACKLOG 64

static int make_socket(void *context)
{
    (void)context;
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int make_wake(void *context)
{
    (void)context;
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static int make_connection(void *listener)
{
    return accept4(*(int *)listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* By its name where that fits (netstat then shows it), else through the folder's descriptor. */
static bool address_of(const struct prb_socket_path *place, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t cap = sizeof out->sun_path;
    if (snprintf(out->sun_path, cap, "%s/%s", place->path, place->name) < (int)cap)
        return true;
    return snprintf(out->sun_path, cap, "/proc/self/fd/%d/%s", place->folder, place->name) <
           (int)cap;
}

int prb_listen_open(const struct prb_socket_path *place, struct prb_error *err)
{
    struct sockaddr_un address;
    int fd = prb_own_fd_make(make_socket, NULL);
    /* one of the same name is left of a program that this process was before execve(2) */
    unlinkat(place->folder, place->name, 0);
    if (fd >= 0 && address_of(place, &address) && fchmod(fd, 0600) == 0 &&
        bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    prb_fail_sys(err, errno, "listening at %s/%s", place->path, place->name);
    prb_own_fd_close(fd);
    return -1;
}

int prb_listen_wake(struct prb_error *err)
{
    int fd = prb_own_fd_make(make_wake, NULL);
    if (fd < 0)
        prb_fail_sys(err, errno, "making an eventfd");
    return fd;
}

double prb_listen_time(void) { return prb_clock_epoch_s(); }

/* The command name of a peer; it may hold anything. */
static void name_of(pid_t pid, char out[32])
{
    char path[48], text[32];
    snprintf(path, sizeof path, "../%d/comm", (int)pid);
    snprintf(out, 32, "?");
    if (pid <= 0 || prb_socket_path_self(path, text, sizeof text) <= 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f || *at == '(' || *at == ')')
            *at = '?';
    snprintf(out, 32, "%s", text);
}

/* One message that belongs to no request; what does not fit into an empty socket's buffer is lost.
 */
static void turn_away(int fd, enum prb_code code, const char *text)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0}, message = {0};
    prb_fields_number(&fields, PRB_FLD_CODE, code);
    prb_fields_text(&fields, PRB_FLD_TEXT, text, strlen(text));
    prb_message_add(&message, PRB_MSG_FAILED, 0, &fields);
    if (prb_buf_ok(&message)) {
        ssize_t n = send(fd, message.data, message.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)n;
    }
    prb_own_fd_close(fd);
    errno = 0;
}

int prb_listen_accept(int listener, bool full, char *who, size_t cap)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof peer;
    char name[32], text[120];
    int fd = prb_own_fd_make(make_connection, &listener);
    if (fd < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
        (peer.uid != geteuid() && peer.uid != 0)) {
        prb_log(prb_server.place.folder, "uid=%u by=%d refused: another user", (unsigned)peer.uid,
                (int)peer.pid);
        snprintf(text, sizeof text, "the target belongs to user %u, you are user %u",
                 (unsigned)geteuid(), (unsigned)peer.uid);
        turn_away(fd, PRB_PERMISSION, text);
        return -1;
    }
    if (full) {
        snprintf(text, sizeof text, "the probe has %d clients already", PRB_CLIENTS_MAX);
        turn_away(fd, PRB_BUSY, text);
        return -1;
    }
    name_of(peer.pid, name);
    snprintf(who, cap, "uid=%u by=%d (%s)", (unsigned)peer.uid, (int)peer.pid, name);
    return fd;
}
