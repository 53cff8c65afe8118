/* The socket at which children wait for a session of their own: see births.h. */
#include "dap/session/births.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define WAITING_MAX 256
#define BACKLOG 128
#define WAIT_S 3.0 /* for a session, where the configuration sets no time */
#define ROUND_MS 200

enum { WAKE, SOCKET, END /* of a target that was replaced */, FIRST };

struct prb_dap_births {
    struct prb_dap_session *session;
    struct prb_dap_children *children;
    double wait_s;
    pthread_t thread;
    struct pollfd fds[FIRST + WAITING_MAX]; /* from FIRST on: the children that wait */
    pid_t pids[FIRST + WAITING_MAX];
    nfds_t count;
    int wakes; /* gets the pid of a child whose session the client does not open; 0: look */
    atomic_bool gone, ending;
};

static void drop(struct prb_dap_births *births, nfds_t at)
{
    close(births->fds[at].fd);
    births->count--;
    births->fds[at] = births->fds[births->count];
    births->pids[at] = births->pids[births->count];
}

static void take(struct prb_dap_births *births)
{
    struct ucred who;
    socklen_t size = sizeof who;
    PRB_AUTO_FD int fd = accept4(births->fds[SOCKET].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 || births->count == FIRST + WAITING_MAX ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0)
        return;                                   /* it goes on */
    bool again = who.pid == births->session->pid; /* by exec */
    if (again)
        prb_dap_children_replaced(births->session);
    else if (births->gone || !prb_dap_children_born(births->session, births->children, who.pid))
        return;
    births->pids[births->count] = who.pid;
    births->fds[births->count++] = (struct pollfd){.fd = PRB_STEAL_FD(fd), .events = POLLIN};
}

/* A child says that it goes on, or closes the connection. */
static void hear(struct prb_dap_births *births, nfds_t at)
{
    char word;
    if (recv(births->fds[at].fd, &word, 1, MSG_DONTWAIT) == 1)
        prb_dap_say(births->session, false,
                    "probing: process %d had no configured session within %g s and goes on; "
                    "subProcessTimeout sets another time",
                    (int)births->pids[at], births->wait_s);
    drop(births, at);
}

/* The target is gone: its children go on; itself with another program is a child now. */
static void let_children_go(struct prb_dap_births *births)
{
    for (nfds_t at = births->count; at-- > FIRST;)
        if (births->pids[at] != births->session->pid)
            drop(births, at);
}

static void let_go(struct prb_dap_births *births, pid_t pid)
{
    for (nfds_t at = births->count; at-- > FIRST;)
        if (births->pids[at] == pid) {
            prb_dap_say(births->session, false,
                        "probing: the client opened no session for process %d, which goes on",
                        (int)pid);
            drop(births, at);
        }
}

static bool is_replaced(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool replaced = session->gone && session->replaced;
    pthread_mutex_unlock(&session->lock);
    return replaced;
}

static void *serve(void *context)
{
    struct prb_dap_births *births = context;
    struct prb_dap_session *session = births->session;
    struct pollfd *fds = births->fds;
    bool replaced = false;
    while (!births->ending) {
        pid_t woken;
        int got = poll(fds, births->count, births->gone && !replaced ? ROUND_MS : -1);
        if ((got < 0 && errno != EINTR) || births->ending)
            return NULL;
        for (nfds_t at = births->count; got > 0 && at-- > FIRST;)
            if (fds[at].revents)
                hear(births, at);
        if (got > 0 && fds[SOCKET].revents)
            take(births);
        while (got > 0 && read(fds[WAKE].fd, &woken, sizeof woken) == sizeof woken)
            let_go(births, woken);
        if (births->gone && !replaced)
            let_children_go(births);
        if (!replaced && births->gone && is_replaced(session)) {
            replaced = true;
            fds[END] = (struct pollfd){.fd = session->pidfd, .events = POLLIN};
        } else if (got > 0 && fds[END].revents) {
            fds[END].fd = -1;
            prb_dap_target_ended(session);
        }
    }
    return NULL;
}

/* An abstract socket: the target may have another root. */
static bool listen_at(struct prb_dap_births *births, char *name, size_t size)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    uint64_t number[2];
    int wakes[2];
    if (pipe2(wakes, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    births->fds[WAKE] = (struct pollfd){.fd = wakes[0], .events = POLLIN};
    births->wakes = wakes[1];
    if (getrandom(number, sizeof number, 0) != sizeof number)
        return false;
    int len = snprintf(name, size, "probing-%016llx%016llx", (unsigned long long)number[0],
                       (unsigned long long)number[1]);
    memcpy(place.sun_path + 1, name, (size_t)len);
    births->fds[SOCKET] = (struct pollfd){
        .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .events = POLLIN};
    return births->fds[SOCKET].fd >= 0 &&
           bind(births->fds[SOCKET].fd, (struct sockaddr *)&place,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0 &&
           listen(births->fds[SOCKET].fd, BACKLOG) == 0;
}

static void release(struct prb_dap_births *births)
{
    for (nfds_t at = 0; at < births->count; at++)
        if (births->fds[at].fd >= 0 && at != END)
            close(births->fds[at].fd);
    if (births->wakes >= 0)
        close(births->wakes);
    free(births);
}

/* From here on the children of the target come. */
static void invite(struct prb_dap_births *births, const char *name)
{
    struct prb_error why = {0};
    json_t *arguments = json_pack("{s:s, s:f}", "socket", name, "seconds", births->wait_s),
           *answer = prb_dap_ask(births->session, "take_children", arguments, 0, &why);
    json_decref(arguments);
    json_decref(answer);
    if (!answer)
        prb_dap_say(births->session, false,
                    "probing: child processes are found only while they run: %s", why.text);
}

struct prb_dap_births *prb_dap_births_open(struct prb_dap_session *session,
                                           struct prb_dap_children *children)
{
    const json_t *seconds = prb_dap_get(session->settings, "subProcessTimeout");
    char name[64];
    struct prb_dap_births *births =
        prb_dap_children_taken(session) ? calloc(1, sizeof *births) : NULL;
    if (!births)
        return NULL;
    births->session = session;
    births->children = children;
    births->wakes = births->fds[WAKE].fd = births->fds[SOCKET].fd = births->fds[END].fd = -1;
    births->count = FIRST;
    births->wait_s = json_is_number(seconds) ? json_number_value(seconds) : WAIT_S;
    if (births->wait_s > 0 && listen_at(births, name, sizeof name) &&
        pthread_create(&births->thread, NULL, serve, births) == 0) {
        invite(births, name);
        session->takes_children = true;
        return births;
    }
    release(births);
    return NULL;
}

static void wake(struct prb_dap_births *births, pid_t pid)
{
    ssize_t sent = write(births->wakes, &pid, sizeof pid);
    (void)sent; /* full: it is awake */
}

void prb_dap_births_refused(struct prb_dap_births *births, pid_t pid)
{
    if (births)
        wake(births, pid);
}

void prb_dap_births_gone(struct prb_dap_births *births)
{
    if (!births)
        return;
    births->gone = true;
    wake(births, 0);
}

void prb_dap_births_close(struct prb_dap_births *births)
{
    if (!births)
        return;
    births->ending = true;
    wake(births, 0);
    pthread_join(births->thread, NULL);
    release(births);
}
