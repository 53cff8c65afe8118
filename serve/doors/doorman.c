/*
 * Connections from accept(2) to the part that speaks what they speak.  epoll(7) tells of new bytes
 * by edges, so a connection whose first bytes do not decide yet wakes nobody until more come.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "format/log_file.h"
#include "net/peer.h"
#include "serve/doors/doors.h"

#define PEEKED 16
#define SHUT_MS 100
#define EVENTS 32

struct doorman {
    const struct prb_serve *serve;
    const struct prb_doors *doors;
    int epoll;
    int spare; /* a descriptor to give up when there are no more; -1: even that was taken */
    bool shut; /* nobody is let in for a moment */
    prb_door_fn *give;
    void *context;
};

static bool watch(const struct doorman *man, int fd, void *what, uint32_t more)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | more, .data.ptr = what};
    return epoll_ctl(man->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* By the socket's address and SO_PEERCRED. */
static void name_peer(int fd, struct prb_peer *out)
{
    struct prb_address address = {.len = sizeof address.room};
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t who_len = sizeof who;
    char text[PRB_ADDRESS_TEXT];
    getpeername(fd, &address.any, &address.len);
    out->local = address.any.sa_family == AF_UNIX;
    out->loopback = prb_address_is_loopback(&address.any);
    if (out->local) {
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len);
        snprintf(out->name, sizeof out->name, "uid %u", (unsigned)who.uid);
    } else {
        prb_address_print(&address, text);
        snprintf(out->name, sizeof out->name, "%.79s", text);
    }
}

/* What it speaks, by the bytes that are there now. */
static void look(struct doorman *man, struct prb_guest *guest)
{
    char bytes[PEEKED];
    ssize_t n = recv(guest->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    enum prb_first_bytes speaks = n > 0 ? prb_first_bytes(bytes, (size_t)n) : PRB_FIRST_CLOSE;
    if (speaks == PRB_FIRST_WAIT)
        return;
    if ((speaks == PRB_FIRST_TLS) != (man->serve->certificate && !guest->peer.local))
        speaks = PRB_FIRST_CLOSE;
    epoll_ctl(man->epoll, EPOLL_CTL_DEL, guest->fd, NULL);
    if (speaks == PRB_FIRST_TEXT &&
        !guest->peer.local) /* HTTP shows a token instead: browsers are this user's, too */
        guest->peer.is_user = prb_peer_check(guest->fd, 0, NULL);
    bool from_here = guest->peer.loopback || guest->peer.is_user;
    if (speaks == PRB_FIRST_CLOSE || (speaks == PRB_FIRST_TEXT && !from_here)) {
        prb_guest_free(guest);
        return;
    }
    prb_guest_spoke(guest);
    man->give(man->context, guest, speaks);
}

static bool watch_doors(struct doorman *man, int operation, uint32_t events)
{
    const int *doors[] = {&man->doors->local, &man->doors->tcp};
    for (size_t i = 0; i < sizeof doors / sizeof *doors; i++) {
        struct epoll_event event = {.events = events, .data.ptr = (void *)doors[i]};
        if (*doors[i] >= 0 && epoll_ctl(man->epoll, operation, *doors[i], &event) != 0)
            return false;
    }
    return true;
}

/* Another thread may take the descriptor that was given up: then the doors rest until there is one. */
static void keep_spare(struct doorman *man)
{
    man->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool shut = man->spare < 0;
    if (shut != man->shut)
        watch_doors(man, EPOLL_CTL_MOD, shut ? 0 : EPOLLIN);
    man->shut = shut;
}

/* Without a descriptor a connection would wait at the door, and wake us for ever. */
static void turn_away(struct doorman *man, int door)
{
    if (errno != EMFILE && errno != ENFILE)
        return;
    close(man->spare);
    int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    keep_spare(man);
    prb_log_file_add(man->serve->log, "a connection is turned away: too many open files");
}

static void let_in(struct doorman *man, int door, bool local)
{
    PRB_AUTO_FD int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        turn_away(man, door);
        return;
    }
    struct prb_peer peer = {0};
    struct prb_error why;
    int on = 1;
    name_peer(fd, &peer);
    peer.is_user = local && prb_peer_check(fd, 0, &why);
    if (local && !peer.is_user) {
        prb_log_file_add(man->serve->log, "refused %s: %s", peer.name, why.text);
        return;
    }
    if (!local)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct prb_guest *guest = prb_guest_new(man->serve->guests, PRB_STEAL_FD(fd), &peer, local);
    if (!guest)
        prb_log_file_add(man->serve->log, "refused %s: there are %d connections", peer.name,
                         PRB_SERVE_KNOWN_MAX);
    else if (!watch(man, guest->fd, guest, EPOLLET))
        prb_guest_free(guest);
}

static bool open_doors(struct doorman *man)
{
    man->epoll = epoll_create1(EPOLL_CLOEXEC);
    man->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return man->epoll >= 0 && watch(man, man->serve->options->stop_fd, NULL, 0) &&
           watch_doors(man, EPOLL_CTL_ADD, EPOLLIN);
}

void prb_doors_run(const struct prb_serve *serve, const struct prb_doors *doors, prb_door_fn *give,
                   void *context)
{
    struct doorman man = {.serve = serve, .doors = doors, .give = give, .context = context};
    struct epoll_event events[EVENTS];
    bool stop = !open_doors(&man);
    if (stop)
        prb_log_file_add(serve->log, "no connection can be taken: %s", strerror(errno));
    while (!stop) {
        int wait = prb_guests_sweep(serve->guests);
        int count = epoll_wait(man.epoll, events, EVENTS, man.shut ? SHUT_MS : wait);
        if (man.shut)
            keep_spare(&man);
        for (int i = 0; i < count; i++) {
            void *what = events[i].data.ptr;
            if (!what)
                stop = true;
            else if (what == &doors->local || what == &doors->tcp)
                let_in(&man, *(const int *)what, what == &doors->local);
            else
                look(&man, what);
        }
    }
    for (struct prb_guest *guest; (guest = prb_guests_at_door(serve->guests));)
        prb_guest_free(guest);
    if (man.spare >= 0)
        close(man.spare);
    close(man.epoll);
}
