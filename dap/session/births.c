/* The socket at which children wait for a session of their own: see births.h. */
#include "dap/session/births.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define WAITING_MAX 256
#define BACKLOG 128
#define WAIT_S 3.0 /* for a session, where the configuration sets no time */

struct prb_dap_births {
    struct prb_dap_session *session;
    struct prb_dap_children *children;
    double wait_s;
    pthread_t thread;
    /* [0]: readable when it is to end; [1]: the socket; then the children that wait */
    struct pollfd fds[2 + WAITING_MAX];
    pid_t pids[2 + WAITING_MAX];
    nfds_t count;
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
    PRB_AUTO_FD int fd = accept4(births->fds[1].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 || births->gone || births->count == 2 + WAITING_MAX ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0 ||
        !prb_dap_children_born(births->session, births->children, who.pid))
        return; /* it goes on */
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

static void *serve(void *context)
{
    struct prb_dap_births *births = context;
    for (;;) {
        uint64_t woken;
        if (poll(births->fds, births->count, -1) < 0 && errno != EINTR)
            return NULL;
        if (births->ending)
            return NULL;
        if (births->fds[0].revents && read(births->fds[0].fd, &woken, sizeof woken) > 0) {
            while (births->count > 2) /* the target is gone: they go on */
                drop(births, births->count - 1);
            births->fds[1].revents = 0;
        }
        for (nfds_t at = births->count; at-- > 2;)
            if (births->fds[at].revents)
                hear(births, at);
        if (births->fds[1].revents)
            take(births);
    }
}

/* An abstract socket: the target may have another root. */
static bool listen_at(struct prb_dap_births *births, char *name, size_t size)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    uint64_t number[2];
    if (getrandom(number, sizeof number, 0) != sizeof number)
        return false;
    int len = snprintf(name, size, "probing-%016llx%016llx", (unsigned long long)number[0],
                       (unsigned long long)number[1]);
    memcpy(place.sun_path + 1, name, (size_t)len);
    births->fds[0] =
        (struct pollfd){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = POLLIN};
    births->fds[1] = (struct pollfd){
        .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .events = POLLIN};
    births->count = 2;
    return births->fds[0].fd >= 0 && births->fds[1].fd >= 0 &&
           bind(births->fds[1].fd, (struct sockaddr *)&place,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0 &&
           listen(births->fds[1].fd, BACKLOG) == 0;
}

static void release(struct prb_dap_births *births)
{
    for (nfds_t at = 0; at < births->count; at++)
        if (births->fds[at].fd >= 0)
            close(births->fds[at].fd);
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
    births->wait_s = json_is_number(seconds) ? json_number_value(seconds) : WAIT_S;
    if (births->wait_s > 0 && listen_at(births, name, sizeof name) &&
        pthread_create(&births->thread, NULL, serve, births) == 0) {
        invite(births, name);
        return births;
    }
    release(births);
    return NULL;
}

static void wake(struct prb_dap_births *births)
{
    ssize_t sent = write(births->fds[0].fd, &(uint64_t){1}, sizeof(uint64_t));
    (void)sent; /* an eventfd takes it */
}

void prb_dap_births_gone(struct prb_dap_births *births)
{
    if (!births)
        return;
    births->gone = true;
    wake(births);
}

void prb_dap_births_close(struct prb_dap_births *births)
{
    if (!births)
        return;
    births->ending = true;
    wake(births);
    pthread_join(births->thread, NULL);
    release(births);
}
