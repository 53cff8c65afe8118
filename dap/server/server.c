/* A listening server: each client that is let in gets a session on a thread of its own. */
#include "dap/server/server.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/syscalls.h"
#include "dap/session/countdown.h"

#define QUIET_S 30      /* a silent connection is probed after this time */
#define SILENT_MS 60000 /* and is lost without an answer after this time */
#define LEAVE_S 5       /* for sessions to end after the target */
#define ROOM_S 1        /* for the thread of a closed stranger to end */
#define NOTES_MAX 20    /* lines about strangers: there may be any number */

_Static_assert(PRB_DAP_TOKEN_MIN == PRB_NET_TOKEN_MIN, "what dap.h says of tokens");

/* One client; in a list, so that all are closed at the end. */
struct prb_dap_connection {
    struct prb_dap_connection *next;
    struct prb_dap_server *server;
    int fd;
    bool known;  /* it needs no token, or has shown it; otherwise it is a stranger */
    bool closed; /* a stranger that had to make room */
};

static void note(const struct prb_dap_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void note(const struct prb_dap_server *server, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (server->options->note)
        server->options->note(server->options->context, text);
}

static void forget(struct prb_dap_connection *client)
{
    struct prb_dap_server *server = client->server;
    pthread_mutex_lock(&server->lock);
    struct prb_dap_connection **at = &server->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    close(client->fd);
    if (client->known) {
        server->sessions--;
        server->served++;
    } else {
        server->strangers--;
    }
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    free(client);
}

static void *serve(void *context)
{
    struct prb_dap_connection *client = context;
    struct prb_dap_server *server = client->server;
    struct prb_error why = {0};
    if (!prb_dap_session_run(&server->host, client->fd, client->fd, client->known, &why)) {
        pthread_mutex_lock(&server->lock);
        bool report = client->known || server->notes++ < NOTES_MAX;
        pthread_mutex_unlock(&server->lock);
        if (report)
            note(server, "a client was refused: %s", why.text);
    }
    forget(client);
    return NULL;
}

static bool admits(struct prb_dap_host *host, int in, struct prb_error *err)
{
    struct prb_dap_server *server = (struct prb_dap_server *)host;
    pthread_mutex_lock(&server->lock);
    struct prb_dap_connection *client = server->clients;
    while (client->fd != in)
        client = client->next;
    bool room = server->sessions < PRB_DAP_SESSIONS_MAX;
    if (room) {
        client->known = true;
        server->strangers--;
        server->sessions++;
    }
    pthread_mutex_unlock(&server->lock);
    return room ||
           prb_fail(err, PRB_BUSY, "%d clients are connected already", PRB_DAP_SESSIONS_MAX);
}

/* Close the oldest stranger.  The lock is held; false: there is no room yet. */
static bool make_room(struct prb_dap_server *server)
{
    struct prb_dap_connection *oldest = NULL;
    if (server->strangers < PRB_DAP_STRANGERS_MAX)
        return true;
    for (struct prb_dap_connection *at = server->clients; at; at = at->next)
        if (!at->known && !at->closed)
            oldest = at; /* the newest is first */
    if (oldest) {
        oldest->closed = true;
        shutdown(oldest->fd, SHUT_RDWR);
    }
    struct timespec until = prb_clock_timespec(prb_clock_s() + ROOM_S);
    while (server->strangers >= PRB_DAP_STRANGERS_MAX)
        if (pthread_cond_timedwait(&server->changed, &server->lock, &until) == ETIMEDOUT)
            return false;
    return true;
}

static void set_options(int fd)
{
    int on = 1, quiet = QUIET_S, times = 3, silent = SILENT_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &quiet, sizeof quiet);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &quiet, sizeof quiet);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof silent);
}

static void note_stranger(struct prb_dap_server *server, const char *text)
{
    pthread_mutex_lock(&server->lock);
    bool report = server->notes++ < NOTES_MAX;
    pthread_mutex_unlock(&server->lock);
    if (report)
        note(server, "%s", text);
}

static void let_in(struct prb_dap_server *server)
{
    struct prb_error why = {0};
    pthread_t thread;
    PRB_AUTO_FD int fd = accept4(server->listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    enum prb_access_answer answer = prb_access_of(&server->access, fd, server->target_uid, &why);
    if (answer == PRB_ACCESS_REFUSED) {
        note_stranger(server, why.text);
        return;
    }
    bool known = answer == PRB_ACCESS_GRANTED;
    struct prb_dap_connection *client = calloc(1, sizeof *client);
    if (!client)
        return;
    set_options(fd);
    pthread_mutex_lock(&server->lock);
    bool room = known ? server->sessions < PRB_DAP_SESSIONS_MAX : make_room(server);
    *client = (struct prb_dap_connection){
        .next = server->clients, .server = server, .fd = fd, .known = known};
    if (room) {
        server->clients = client;
        server->sessions += known;
        server->strangers += !known;
    }
    bool report = known || (!room && server->notes++ < NOTES_MAX);
    pthread_mutex_unlock(&server->lock);
    if (!room) {
        if (report)
            note(server, "a client was refused: too many are connected");
        free(client);
        return;
    }
    (void)PRB_STEAL_FD(fd);
    if (pthread_create(&thread, NULL, serve, client) == 0)
        pthread_detach(thread);
    else
        forget(client);
}

static bool is_done(struct prb_dap_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool done = server->options->once && server->served && !server->sessions;
    pthread_mutex_unlock(&server->lock);
    return done;
}

static void stop_target(struct prb_dap_server *server)
{
    struct signalfd_siginfo info;
    struct prb_error why = {0};
    ssize_t got = read(server->options->pause_fd, &info, sizeof info);
    if (got > 0 && server->options->pid &&
        !prb_dap_debuggee_stop(server, server->options->pid, &why))
        note(server, "process %d cannot be paused: %s", (int)server->options->pid, why.text);
}

static bool wait_for_clients(struct prb_dap_server *server, int target, struct prb_error *err)
{
    enum { ROUND_MS = 200 };
    const struct prb_dap_listen_options *options = server->options;
    double until =
        options->pause && options->resume_after > 0 ? prb_clock_s() + options->resume_after : 0;
    while (!is_done(server)) {
        struct pollfd fds[] = {
            {.fd = server->listening, .events = POLLIN},
            {.fd = options->stop_fd, .events = POLLIN},
            {.fd = target, .events = POLLIN},
            {.fd = options->pause_fd, .events = POLLIN},
        };
        if (poll(fds, 4, options->once || until > 0 ? ROUND_MS : -1) < 0 && errno != EINTR)
            return prb_fail_sys(err, errno, "waiting for clients");
        if (fds[1].revents)
            return true;
        if (fds[2].revents) {
            note(server, "process %d has ended", (int)options->pid);
            return true;
        }
        if (fds[3].revents)
            stop_target(server);
        if (fds[0].revents)
            let_in(server);
        if (until > 0 && prb_clock_s() >= until) {
            until = 0;
            if (prb_dap_debuggee_resume(server))
                note(server, "no client came: process %d runs on", (int)options->pid);
        }
    }
    return true;
}

/* Wait for the sessions to end, then close the connections of the others. */
static void end_sessions(struct prb_dap_server *server, double wait_s)
{
    struct timespec until = prb_clock_timespec(prb_clock_s() + wait_s);
    pthread_mutex_lock(&server->lock);
    while (server->sessions && wait_s > 0 &&
           pthread_cond_timedwait(&server->changed, &server->lock, &until) != ETIMEDOUT)
        continue;
    for (struct prb_dap_connection *at = server->clients; at; at = at->next)
        shutdown(at->fd, SHUT_RD);
    while (server->sessions || server->strangers)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

/* Report now, not to the first client: a file that is not a core, a process without Python or of
 * another user. */
static bool can_be_opened(const struct prb_dap_listen_options *options, struct prb_error *err)
{
    struct prb_error why = {0};
    struct prb_target *target = options->file ? prb_target_open(options->file, NULL, &why)
                                              : prb_target_open_pid(options->pid, &why);
    if (target)
        prb_target_close(target);
    bool final = options->file || why.code == PRB_NOT_PYTHON || why.code == PRB_PERMISSION;
    if (target || !final)
        return true;
    if (err)
        *err = why;
    return false;
}

/* No client is connected that could show it. */
static void warn_of_time_out(struct prb_dap_server *server)
{
    double seconds = 0;
    char name[128];
    pid_t pid = server->options->pid;
    json_t *answer = prb_dap_debuggee_ask(server, pid, "time_outs", NULL);
    if (prb_dap_countdown_first(answer, &seconds, name, sizeof name))
        note(server, "process %d is paused: the time-out of %.100s (%.0f s) may end its job%s",
             (int)pid, name, seconds,
             server->options->resume_after > 0 && server->options->resume_after < seconds
                 ? ""
                 : "; --resume-after lets it go on in time");
    json_decref(answer);
}

/* A client gets the target's rights: the user who has just those may be let in, which another id
 * of the target, a capability or what keeps its user from tracing it (its /proc is root's) undo. */
static void know_target(struct prb_dap_server *server, pid_t pid)
{
    struct prb_ids *ids = &server->target_ids;
    struct stat status;
    char folder[32];
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    server->target_uid = geteuid();
    if (pid && prb_ids_of(pid, ids) && stat(folder, &status) == 0 &&
        prb_ids_all_alike(ids->users) && prb_ids_all_alike(ids->groups) && !ids->permitted &&
        status.st_uid == ids->users[0])
        server->target_uid = ids->users[0];
}

static bool is_local(const struct prb_dap_server *server)
{
    return server->at.any.sa_family == AF_UNIX;
}

/* A socket that listens at options->address, and what lets clients in there. */
static bool begin_listening(struct prb_dap_server *server, struct prb_error *err)
{
    const struct prb_dap_listen_options *options = server->options;
    struct prb_access *access = &server->access;
    if (!prb_address_parse(options->address, &server->at, err) ||
        !prb_access_choose(&server->at, options->token, options->any_user, access, err))
        return false;
    server->listening = prb_address_listen(&server->at, PRB_DAP_SESSIONS_MAX, err);
    if (server->listening < 0)
        return false;
    prb_address_print(&server->at, server->address);
    if (*access->token)
        server->host.token = access->token;
    server->host.reached = options->reached;
    if (!is_local(server) || options->reached)
        server->host.address = server->address;
    return true;
}

static bool run(struct prb_dap_server *server, struct prb_error *err)
{
    const struct prb_dap_listen_options *options = server->options;
    PRB_AUTO_FD int target = options->pid ? (int)syscall(SYS_pidfd_open, options->pid, 0) : -1;
    if (options->pid && target < 0 && errno == ESRCH)
        return prb_fail(err, PRB_NOT_FOUND, "there is no process %d", (int)options->pid);
    know_target(server, options->pid);
    if ((options->file || options->pid) && !can_be_opened(options, err))
        return false;
    if (!begin_listening(server, err))
        return false;
    if (options->pause && !prb_dap_debuggee_pause(server, options->pid, err))
        return false;
    if (options->ready)
        options->ready(options->context, server->address,
                       *server->access.token ? server->access.token : NULL);
    if (options->pause)
        warn_of_time_out(server);
    bool good = wait_for_clients(server, target, err);
    struct pollfd ended = {.fd = target, .events = POLLIN};
    end_sessions(server, target >= 0 && poll(&ended, 1, 0) == 1 ? LEAVE_S : 0);
    prb_dap_debuggee_resume(server);
    return good;
}

static const struct prb_dap_host_ops host_ops = {.allows = prb_dap_debuggee_allows,
                                                 .admits = admits,
                                                 .claim = prb_dap_debuggee_claim,
                                                 .release = prb_dap_debuggee_release};

bool prb_dap_listen(const struct prb_dap_listen_options *options, struct prb_error *err)
{
    struct prb_dap_server *server = calloc(1, sizeof *server);
    if (!server)
        return prb_fail(err, PRB_NOMEM, "out of memory");
    server->host = (struct prb_dap_host){.ops = &host_ops,
                                         .token = options->token,
                                         .pid = options->pid,
                                         .file = options->file,
                                         .look = options->look,
                                         .keeps_target = !options->once};
    server->options = options;
    server->listening = -1;
    pthread_mutex_init(&server->lock, NULL);
    prb_clock_cond_init(&server->changed);
    bool good = run(server, err);
    if (server->listening >= 0) {
        close(server->listening);
        if (is_local(server))
            unlink(options->address);
    }
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    prb_access_deinit(&server->access);
    free(server);
    return good;
}
