/*
 * The server thread: poll(2) over the socket and its clients, without a timeout when nobody waits
 * for anything.  It never takes the GIL and blocks all signals, so the program never sees it.
 */
#include "inject/probe/server/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "inject/probe/libc.h"
#include "inject/probe/own_fds.h"
#include "inject/probe/server/listen.h"
#include "inject/probe/thread.h"

#define REST_NS 500000000u /* after the program ran out of descriptors */

enum { FIRST_CLIENT = 2 };

#define INITIAL                                                                                    \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER,                                                         \
        .listener = -1,                                                                            \
        .wake = -1,                                                                                \
    }

struct prb_server prb_server = INITIAL;
PRB_CLOCK_COND(prb_server.changed)

void prb_server_reset(void)
{
    prb_server = (struct prb_server)INITIAL;
    prb_clock_cond_init(&prb_server.changed);
}

void prb_server_wake(void)
{
    uint64_t one = 1;
    ssize_t n = write(prb_server.wake, &one, sizeof one);
    (void)n; /* full: it is awake anyway */
}

static void lock(void) { pthread_mutex_lock(&prb_server.lock); }
static void unlock(void) { pthread_mutex_unlock(&prb_server.lock); }

/* When something must happen although no descriptor says so; 0: never. */
static uint64_t client_deadline(const struct prb_client *client)
{
    if (client->stuck)
        return client->stuck + PRB_STUCK_NS;
    return client->greeted ? 0 : client->since + PRB_GREETING_NS;
}

/* places: of the clients in fds.  Nothing else is in fds: there may be no more of them than the program may have
 * descriptors (poll(2): EINVAL).  The clients are looked at with the lock held: other threads send to
 * them. */
static int prepare(struct pollfd *fds, int *places, uint64_t resting_until, uint64_t *deadline_out)
{
    uint64_t deadline = resting_until;
    int count = FIRST_CLIENT;
    fds[0] = (struct pollfd){.fd = prb_server.wake, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = resting_until ? -1 : prb_server.listener, .events = POLLIN};
    lock();
    for (int i = 0; i < PRB_CLIENTS_MAX; i++) {
        const struct prb_client *client = prb_server.clients[i];
        if (!client)
            continue;
        size_t waiting = prb_client_waiting(client);
        uint64_t own = client_deadline(client);
        short events = (short)((waiting < PRB_OUTPUT_WAIT ? POLLIN : 0) | (waiting ? POLLOUT : 0));
        if (own && (!deadline || own < deadline))
            deadline = own;
        places[count] = i;
        fds[count++] = (struct pollfd){.fd = client->fd, .events = events};
    }
    unlock();
    *deadline_out = deadline;
    return count;
}

static int milliseconds_to(uint64_t deadline)
{
    uint64_t now = prb_clock_ns();
    if (!deadline)
        return -1;
    return deadline <= now ? 0 : (int)((deadline - now) / 1000000 + 1);
}

void prb_server_drop(int place)
{
    struct prb_client *client = prb_server.clients[place];
    prb_client_abandon(client, NULL);
    lock();
    prb_server.clients[place] = NULL;
    prb_server.clients_now--;
    pthread_cond_broadcast(&prb_server.changed);
    unlock();
    prb_own_fd_close(client->fd);
    prb_client_free(client);
}

static void serve_client(int place, short events)
{
    struct prb_client *client = prb_server.clients[place];
    lock();
    if (events & POLLOUT) {
        prb_client_flush(client);
        pthread_cond_broadcast(&prb_server.changed);
    }
    uint64_t deadline = client_deadline(client);
    bool overdue = deadline && deadline <= prb_clock_ns();
    bool dead = client->dead || overdue || (events & (POLLERR | POLLNVAL));
    unlock();
    if (!dead && (events & (POLLIN | POLLHUP))) {
        prb_client_read(client);
        dead = client->dead;
    }
    if (dead)
        prb_server_drop(place);
}

/* True: the program has no descriptors left; asking again at once would only burn its time. */
static bool accept_one(void)
{
    char who[96];
    int place = 0;
    while (place < PRB_CLIENTS_MAX && prb_server.clients[place])
        place++;
    int fd = prb_listen_accept(prb_server.listener, place == PRB_CLIENTS_MAX, who, sizeof who);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    struct prb_client *client = prb_client_new(fd, who);
    if (!client) {
        prb_own_fd_close(fd);
        return true;
    }
    lock();
    prb_server.clients[place] = client;
    prb_server.clients_now++;
    unlock();
    return false;
}

static bool runs(void)
{
    lock();
    bool yes = prb_server.state == PRB_STATE_RUNS;
    unlock();
    return yes;
}

/* poll(2) takes nothing, for want of memory or as the program may have fewer descriptors by now: what came is found
 * by trying, twice a second. */
static void try_all(struct pollfd *fds, int count)
{
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = REST_NS}, NULL);
    for (int i = 0; i < count; i++)
        fds[i].revents = fds[i].events;
}

static void *serve(void *nothing)
{
    struct pollfd fds[FIRST_CLIENT + PRB_CLIENTS_MAX];
    int places[FIRST_CLIENT + PRB_CLIENTS_MAX];
    uint64_t resting_until = 0, deadline, signs;
    (void)nothing;
    while (runs()) {
        int count = prepare(fds, places, resting_until, &deadline);
        if (poll(fds, (nfds_t)count, milliseconds_to(deadline)) < 0 && errno != EINTR)
            try_all(fds, count);
        if (resting_until && prb_clock_ns() >= resting_until)
            resting_until = 0;
        if (fds[0].revents && read(prb_server.wake, &signs, sizeof signs) < 0 && errno != EAGAIN)
            break;
        for (int i = FIRST_CLIENT; i < count; i++)
            serve_client(places[i], fds[i].revents);
        if (fds[1].revents && accept_one())
            resting_until = prb_clock_ns() + REST_NS;
    }
    prb_server_finish();
    return NULL;
}

bool prb_server_start(const struct prb_socket_path *place, struct prb_error *err)
{
    prb_server.place = *place;
    prb_server.listener = prb_listen_open(place, err);
    prb_server.wake = prb_server.listener < 0 ? -1 : prb_listen_wake(err);
    prb_server.started = prb_listen_time();
    prb_server.state = PRB_STATE_RUNS;
    prb_server.owner = getpid();
    if (prb_server.wake >= 0 && prb_thread_start("probing", serve, NULL, err)) {
        lock();
        pthread_cond_broadcast(&prb_server.changed); /* who waits for its beginning */
        unlock();
        return true;
    }
    prb_server.owner = 0;
    prb_server.state = PRB_STATE_NONE;
    if (prb_server.listener >= 0)
        unlinkat(place->folder, place->name, 0);
    prb_own_fd_close(prb_server.listener);
    prb_own_fd_close(prb_server.wake);
    prb_server.listener = prb_server.wake = -1;
    return false;
}

bool prb_server_runs_here(void)
{
    return prb_server.owner == getpid() && prb_server.state == PRB_STATE_RUNS;
}

void prb_server_stop(void)
{
    lock();
    if (prb_server.state == PRB_STATE_RUNS)
        prb_server.state = PRB_STATE_ENDS;
    prb_server_wake();
    unlock();
}
