/* The process that starts children: starter.h. */
#include "fleet/host/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/syscalls.h"
#include "fleet/host/child.h"

#define ANSWERS 5      /* s that it may take */
#define OVERDUE_MAX 64 /* children that were killed and have not ended */

struct order {
    pid_t kill; /* 0: start one */
    struct prb_fleet_member member;
};

struct done {
    pid_t child; /* 0: sys says why */
    int sys;
};

/* ---- its own life ---- */

static pid_t overdue[OVERDUE_MAX];

static void forget_ended(void)
{
    for (size_t i = 0; i < OVERDUE_MAX; i++)
        if (overdue[i] && waitpid(overdue[i], NULL, WNOHANG) != 0)
            overdue[i] = 0;
}

static void end_child(pid_t child)
{
    if (waitpid(child, NULL, WNOHANG) != 0) /* it has ended, or is none of ours */
        return;
    kill(child, SIGKILL);
    if (prb_fleet_child_wait(child))
        return;
    for (size_t i = 0; i < OVERDUE_MAX; i++)
        if (!overdue[i]) {
            overdue[i] = child;
            return;
        }
}

/* False: nobody has orders any more.  *fd_out: a child's, or -1. */
static bool receive(int from, struct order *order, int *fd_out)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {order, sizeof *order};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got;
    *fd_out = -1;
    do
        got = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *with = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (with && with->cmsg_level == SOL_SOCKET && with->cmsg_type == SCM_RIGHTS &&
        with->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd_out, CMSG_DATA(with), sizeof *fd_out);
    return got == (ssize_t)sizeof *order;
}

static void serve(int from)
{
    struct order order;
    int fd;
    pid_t own = getpid();
    while (receive(from, &order, &fd)) {
        struct done done = {0};
        forget_ended();
        if (order.kill) {
            end_child(order.kill);
        } else if (fd >= 0) {
            done.child = fork();
            if (done.child == 0)
                prb_fleet_child_live(&order.member, fd, own);
            done.sys = errno;
            if (done.child < 0)
                done.child = 0;
        }
        if (fd >= 0)
            close(fd);
        if (send(from, &done, sizeof done, MSG_NOSIGNAL) != (ssize_t)sizeof done)
            break;
    }
}

void prb_fleet_starter_live(int fd)
{
    /* Ctrl-C is for whoever gives the orders. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prb_fleet_child_leave(fd);
    serve(fd);
    _exit(0);
}

/* words: NULL: go on as a copy of this process, which has one thread; else only what a copy of one of many may do. */
static void live(int from, pid_t parent, const char *const *words)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    if (!words)
        prb_fleet_starter_live(from);
    if (fcntl(from, F_SETFD, 0) == 0)
        execv(words[0], (char *const *)words);
    _exit(127);
}

/* ---- whoever gives the orders ---- */

static struct {
    pthread_mutex_t lock;
    pid_t pid, of; /* of: whose it is; a copy of that process has none */
    int fd;
} starter = {PTHREAD_MUTEX_INITIALIZER, 0, 0, -1};

#define WORDS_MAX 8

static bool begin(const char *const *words, struct prb_error *err)
{
    int pair[2];
    char number[16];
    const char *all[WORDS_MAX + 2] = {0};
    const struct timeval most = {.tv_sec = ANSWERS};
    if (prb_fleet_starter_is_there())
        return true;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return prb_fail_sys(err, errno, "socketpair");
    snprintf(number, sizeof number, "%d", pair[1]);
    size_t count = 0;
    for (; words && words[count] && count < WORDS_MAX; count++)
        all[count] = words[count];
    all[count] = number;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        live(pair[1], parent, words ? all : NULL);
    int sys = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return prb_fail_sys(err, sys, "fork");
    }
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    starter.pid = pid;
    starter.of = parent;
    starter.fd = pair[0];
    return true;
}

bool prb_fleet_starter_begin(struct prb_error *err) { return begin(NULL, err); }

bool prb_fleet_starter_begin_as(const char *const *words, struct prb_error *err)
{
    return begin(words, err);
}

/* With the lock. */
static void give_up(void)
{
    if (starter.fd >= 0 && starter.of == getpid()) {
        close(starter.fd);
        kill(starter.pid, SIGKILL);
        while (waitpid(starter.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    starter.fd = -1;
    starter.pid = 0;
}

void prb_fleet_starter_end(void)
{
    pthread_mutex_lock(&starter.lock);
    give_up();
    pthread_mutex_unlock(&starter.lock);
}

bool prb_fleet_starter_is_there(void)
{
    pthread_mutex_lock(&starter.lock);
    bool there = starter.fd >= 0 && starter.of == getpid();
    pthread_mutex_unlock(&starter.lock);
    return there;
}

/* With the lock. */
static bool exchange(const struct order *order, int fd, struct done *done)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)order, sizeof *order};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    do
        n = sendmsg(starter.fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof *order)
        return false;
    do
        n = recv(starter.fd, done, sizeof *done, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *done;
}

/* A starter that fails to answer once could answer the next order with this one's. */
static bool give(const struct order *order, int fd, struct done *done)
{
    pthread_mutex_lock(&starter.lock);
    bool good = starter.fd >= 0 && starter.of == getpid() && exchange(order, fd, done);
    if (!good)
        give_up();
    pthread_mutex_unlock(&starter.lock);
    return good;
}

pid_t prb_fleet_starter_start(const struct prb_fleet_member *member, int fd, struct prb_error *err)
{
    const struct order order = {.member = *member};
    struct done done = {0};
    if (!give(&order, fd, &done))
        prb_fail(err, PRB_IO, "the process that starts those that look at ranks has ended");
    else if (!done.child)
        prb_fail_sys(err, done.sys, "fork");
    return done.child;
}

void prb_fleet_starter_kill(pid_t child)
{
    const struct order order = {.kill = child};
    struct done done;
    give(&order, -1, &done);
}
