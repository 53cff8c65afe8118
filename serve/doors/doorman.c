/*
 * Connections from accept(2) to the part that speaks what they speak.  epoll(7) tells of new bytes
 * by edges, so a connection whose first bytes do not decide yet wakes nobody until more come.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "net/peer.h"
#include "serve/doors/doors.h"
#include "serve/doors/log.h"

#define FIRST_SECONDS 10 /* a connection has to say something */
#define PEEKED 16
#define EVENTS 32

struct stranger {
    int fd; /* -1: free */
    double until;
    struct prb_peer peer;
};

struct doorman {
    const struct prb_doors *doors;
    bool tls;
    int epoll;
    struct stranger strangers[PRB_SERVE_STRANGERS_MAX];
    struct prb_serve_log *log;
    prb_door_fn *give;
    void *context;
};

enum { STOP = -3, LOCAL = -2, TCP = -1 }; /* of epoll's data; else the index of a stranger */

static bool watch(struct doorman *man, int fd, int what)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP,
                                .data.u64 = (uint64_t)(int64_t)what};
    if (what >= 0)
        event.events |= EPOLLET;
    return epoll_ctl(man->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void forget(struct doorman *man, struct stranger *stranger, bool shut)
{
    epoll_ctl(man->epoll, EPOLL_CTL_DEL, stranger->fd, NULL);
    if (shut)
        close(stranger->fd);
    stranger->fd = -1;
}

/* Room for one more: the one that waits longest goes. */
static struct stranger *take_place(struct doorman *man)
{
    struct stranger *oldest = man->strangers;
    for (size_t i = 0; i < PRB_SERVE_STRANGERS_MAX; i++) {
        struct stranger *one = man->strangers + i;
        if (one->fd < 0)
            return one;
        if (one->until < oldest->until)
            oldest = one;
    }
    forget(man, oldest, true);
    return oldest;
}

void prb_peer_name(int fd, struct prb_peer *out)
{
    struct prb_address address = {.len = sizeof address.room};
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t who_len = sizeof who;
    char text[PRB_ADDRESS_TEXT];
    getpeername(fd, &address.any, &address.len);
    out->local = address.any.sa_family == AF_UNIX;
    if (out->local) {
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len);
        snprintf(out->name, sizeof out->name, "uid %u", (unsigned)who.uid);
    } else {
        prb_address_print(&address, text);
        snprintf(out->name, sizeof out->name, "%.79s", text);
    }
}

/* What it speaks, by the bytes that are there now. */
static void look(struct doorman *man, struct stranger *stranger)
{
    char bytes[PEEKED];
    ssize_t n = recv(stranger->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    enum prb_first_bytes speaks = n > 0 ? prb_first_bytes(bytes, (size_t)n) : PRB_FIRST_CLOSE;
    if (speaks == PRB_FIRST_WAIT)
        return;
    if ((speaks == PRB_FIRST_TLS) != (man->tls && !stranger->peer.local))
        speaks = PRB_FIRST_CLOSE;
    int fd = stranger->fd;
    struct prb_peer peer = stranger->peer;
    forget(man, stranger, speaks == PRB_FIRST_CLOSE);
    if (speaks == PRB_FIRST_TEXT &&
        !peer.local) /* HTTP shows a token instead: browsers are this user's, too */
        peer.is_user = prb_peer_check(fd, 0, NULL);
    if (speaks != PRB_FIRST_CLOSE)
        man->give(man->context, fd, speaks, &peer);
}

static void let_in(struct doorman *man, int door, bool local)
{
    PRB_AUTO_FD int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct prb_peer peer = {0};
    struct prb_error why;
    int on = 1;
    prb_peer_name(fd, &peer);
    peer.is_user = local && prb_peer_check(fd, 0, &why);
    if (local && !peer.is_user) {
        prb_serve_log(man->log, "refused %s: %s", peer.name, why.text);
        return;
    }
    if (!local)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct stranger *place = take_place(man);
    *place = (struct stranger){.fd = fd, .until = prb_clock_s() + FIRST_SECONDS, .peer = peer};
    if (watch(man, fd, (int)(place - man->strangers)))
        (void)PRB_STEAL_FD(fd);
    else
        place->fd = -1;
}

static int wait_ms(const struct doorman *man)
{
    double now = prb_clock_s(), next = now + FIRST_SECONDS;
    bool any = false;
    for (size_t i = 0; i < PRB_SERVE_STRANGERS_MAX; i++) {
        any = any || man->strangers[i].fd >= 0;
        if (man->strangers[i].fd >= 0 && man->strangers[i].until < next)
            next = man->strangers[i].until;
    }
    return !any ? -1 : next <= now ? 0 : (int)((next - now) * 1000) + 1;
}

static void end_overdue(struct doorman *man)
{
    double now = prb_clock_s();
    for (size_t i = 0; i < PRB_SERVE_STRANGERS_MAX; i++)
        if (man->strangers[i].fd >= 0 && man->strangers[i].until <= now)
            forget(man, man->strangers + i, true);
}

void prb_doors_run(const struct prb_doors *doors, bool tls, int stop_fd, struct prb_serve_log *log,
                   prb_door_fn *give, void *context)
{
    struct doorman man = {.doors = doors, .tls = tls, .log = log, .give = give, .context = context};
    struct epoll_event events[EVENTS];
    bool stop = false;
    PRB_AUTO_FD int epoll = epoll_create1(EPOLL_CLOEXEC);
    man.epoll = epoll;
    for (size_t i = 0; i < PRB_SERVE_STRANGERS_MAX; i++)
        man.strangers[i].fd = -1;
    if (epoll < 0 || !watch(&man, stop_fd, STOP) || !watch(&man, doors->local, LOCAL) ||
        (doors->tcp >= 0 && !watch(&man, doors->tcp, TCP))) {
        prb_serve_log(log, "no connection can be taken: %s", strerror(errno));
        return;
    }
    while (!stop) {
        int count = epoll_wait(epoll, events, EVENTS, wait_ms(&man));
        for (int i = 0; i < count; i++) {
            int what = (int)(int64_t)events[i].data.u64;
            if (what == STOP)
                stop = true;
            else if (what == LOCAL || what == TCP)
                let_in(&man, what == LOCAL ? doors->local : doors->tcp, what == LOCAL);
            else if (man.strangers[what].fd >= 0)
                look(&man, man.strangers + what);
        }
        end_overdue(&man);
    }
    for (size_t i = 0; i < PRB_SERVE_STRANGERS_MAX; i++)
        if (man.strangers[i].fd >= 0)
            forget(&man, man.strangers + i, true);
}
