/*
 * The end of the server, on its own thread: the socket's name goes first, then the requests, then
 * the parts, then the last answers and the descriptors.  What stays is mapped text
 * and this file's static data.
 */
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "inject/probe/libc.h"
#include "inject/probe/own_fds.h"
#include "inject/probe/part.h"
#include "inject/probe/server/server.h"

#define EXIT_S 0.05
#define FAREWELL_NS 1000000000u /* for clients to take their last answers */

static void answer_detach(struct prb_client *client)
{
    struct prb_request *asked[PRB_REQUESTS_MAX];
    int count = 0;
    pthread_mutex_lock(&prb_server.lock);
    for (int i = 0; i < PRB_REQUESTS_MAX; i++)
        if (client->requests[i])
            asked[count++] = prb_request_hold(client->requests[i]);
    pthread_mutex_unlock(&prb_server.lock);
    for (int i = 0; i < count; i++) {
        prb_request_end(asked[i], NULL);
        prb_request_release(asked[i]);
    }
}

/* False: all of it is sent, or nothing more can be. */
static bool sends(struct prb_client *client)
{
    pthread_mutex_lock(&prb_server.lock);
    prb_client_flush(client);
    bool more = !client->dead && prb_client_waiting(client) > 0;
    pthread_mutex_unlock(&prb_server.lock);
    return more;
}

static void say_farewell(struct prb_client *client, uint64_t until)
{
    while (sends(client)) {
        struct pollfd fd = {.fd = client->fd, .events = POLLOUT};
        uint64_t now = prb_clock_ns();
        if (now >= until ||
            (poll(&fd, 1, (int)((until - now) / 1000000 + 1)) < 0 && errno != EINTR))
            return;
    }
}

/*
 * At exit(3), however the program comes to it: the socket's name goes, and nothing else, as threads
 * still run.  After fork(2) the child has none.  What ends without exit(3) (a signal, _exit,
 * execve) leaves it to the next probe of this user, which sweeps (socket_path_make.c).
 */
__attribute__((destructor)) static void remove_socket(void)
{
    if (prb_server.owner != getpid())
        return;
    struct timespec until = prb_clock_epoch_in(EXIT_S);
    /* Whoever holds the lock may be a thread that waits for us. */
    if (pthread_mutex_timedlock(&prb_server.lock, &until) != 0)
        return;
    if (prb_server.state == PRB_STATE_RUNS)
        unlinkat(prb_server.place.folder, prb_server.place.name, 0);
    pthread_mutex_unlock(&prb_server.lock);
}

void prb_server_finish(void)
{
    unlinkat(prb_server.place.folder, prb_server.place.name, 0);
    prb_own_fd_close(prb_server.listener);
    for (int i = 0; i < PRB_CLIENTS_MAX; i++)
        if (prb_server.clients[i])
            prb_client_abandon(prb_server.clients[i], &prb_request_detach);
    prb_parts_end();
    for (int i = 0; i < PRB_CLIENTS_MAX; i++)
        if (prb_server.clients[i])
            answer_detach(prb_server.clients[i]);
    uint64_t until = prb_clock_ns() + FAREWELL_NS;
    for (int i = 0; i < PRB_CLIENTS_MAX; i++) {
        if (prb_server.clients[i]) {
            say_farewell(prb_server.clients[i], until);
            prb_server_drop(i);
        }
    }
    pthread_mutex_lock(&prb_server.lock);
    prb_own_fd_close(prb_server.wake);
    prb_own_fd_close(prb_server.place.folder);
    prb_server.wake = prb_server.listener = -1;
    prb_server.owner = 0;
    prb_server.state = PRB_STATE_NONE;
    pthread_cond_broadcast(&prb_server.changed);
    pthread_mutex_unlock(&prb_server.lock);
}

/* Whether there is one no more (or: there is one) within the seconds. */
static bool wait_until(bool none, double seconds)
{
    struct timespec until = prb_clock_in(seconds);
    int failed = 0;
    pthread_mutex_lock(&prb_server.lock);
    while ((prb_server.state == PRB_STATE_NONE) != none && failed != ETIMEDOUT)
        failed = pthread_cond_timedwait(&prb_server.changed, &prb_server.lock, &until);
    bool is = (prb_server.state == PRB_STATE_NONE) == none;
    pthread_mutex_unlock(&prb_server.lock);
    return is;
}

bool prb_server_wait(double seconds) { return wait_until(true, seconds); }

bool prb_server_wait_begun(double seconds) { return wait_until(false, seconds); }
