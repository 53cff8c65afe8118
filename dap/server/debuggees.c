/* Processes that are debugged through a server, each by one session at a time; some stay stopped
 * for the next session. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "dap/server/server.h"
#include "proc/stat.h"

#define GONE_PID (-1)
#define LEAVING_S 20 /* for a session to leave its process, or to take it */
#define MOMENT_S 1   /* for a client to go that has a connection still: it may be ending */

static void take_event(void *context, const char *event, json_t *body)
{
    struct prb_dap_debuggee *debuggee = context;
    struct prb_dap_server *server = debuggee->server;
    pthread_mutex_lock(&server->lock);
    if (strcmp(event, "stopped") == 0) {
        json_decref(debuggee->stopped);
        debuggee->stopped = json_incref(body);
        pthread_cond_broadcast(&server->changed);
    } else if (strcmp(event, "continued") == 0 || strcmp(event, "gone") == 0) {
        json_decref(debuggee->stopped);
        debuggee->stopped = NULL;
    }
    if (strcmp(event, "gone") == 0)
        debuggee->pid = GONE_PID; /* another session may have the process, with a new probe */
    struct prb_dap_session *owner = debuggee->owner;
    debuggee->in_use += owner != NULL;
    pthread_mutex_unlock(&server->lock);
    if (!owner)
        return;
    prb_dap_target_event(owner, event, body);
    pthread_mutex_lock(&server->lock);
    debuggee->in_use--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* The lock is held. */
static struct prb_dap_debuggee *find(struct prb_dap_server *server, pid_t pid)
{
    for (size_t i = 0; i < PRB_DAP_SESSIONS_MAX; i++)
        if (server->debuggees[i].pid == pid)
            return &server->debuggees[i];
    return NULL;
}

static const struct prb_process *listed(const struct prb_process_list *list, pid_t pid)
{
    for (size_t i = 0; list && i < list->count; i++)
        if (list->items[i].pid == pid)
            return &list->items[i];
    return NULL;
}

static pid_t parent_of(pid_t pid)
{
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    return prb_stat_of(folder, &stat) ? (pid_t)stat.field[PRB_STAT_PPID] : 0;
}

static bool has_group(const struct prb_ids *ids, gid_t group)
{
    for (unsigned i = 0; i < ids->more_count; i++)
        if (ids->more[i] == group)
            return true;
    return ids->groups[0] == group;
}

/* Whether a process has only rights that the target had when the server started.  The server may
 * run with more rights than its clients; a program of another user, or one that can become another
 * (its saved id is not the target's), would lend them those. */
static bool has_no_more(const struct prb_dap_server *server, pid_t pid)
{
    const struct prb_ids *ours = &server->target_ids;
    struct prb_ids its;
    if (!prb_ids_of(pid, &its) || memcmp(its.users, ours->users, sizeof its.users) != 0 ||
        memcmp(its.groups, ours->groups, sizeof its.groups) != 0 ||
        ((its.permitted | its.effective) & ~(ours->permitted | ours->effective)) ||
        its.user_namespace != ours->user_namespace)
        return false;
    for (unsigned i = 0; i < its.more_count; i++)
        if (!has_group(ours, its.more[i]))
            return false;
    return true;
}

/* The server's own target, what it started, and ranks of the same job: those of one launcher, which
 * init, who takes in all orphans, is not. */
static bool is_of_job(const struct prb_dap_server *server, pid_t pid)
{
    enum { GENERATIONS_MAX = 64 };
    pid_t mine = server->options->pid, at = pid;
    for (int i = 0; mine && i < GENERATIONS_MAX && at > 1; i++, at = parent_of(at))
        if (at == mine)
            return true;
    struct prb_process_list *list = prb_process_list(NULL);
    const struct prb_process *one = listed(list, pid), *own = listed(list, mine);
    bool rank =
        one && own && one->rank >= 0 && own->rank >= 0 && one->ppid == own->ppid && own->ppid > 1;
    prb_process_list_free(list);
    return rank;
}

bool prb_dap_debuggee_allows(struct prb_dap_host *host, pid_t pid, struct prb_error *err)
{
    const struct prb_dap_server *server = (struct prb_dap_server *)host;
    if (!server->options->pid && !server->options->file)
        return true;
    if (!is_of_job(server, pid))
        return prb_fail(err, PRB_PERMISSION,
                        "this server debugs process %d, and %d does not belong to its job",
                        (int)server->options->pid, (int)pid);
    return has_no_more(server, pid) ||
           prb_fail(err, PRB_PERMISSION,
                    "process %d has other rights than process %d had when this server started",
                    (int)pid, (int)server->options->pid);
}

static bool open_backend(struct prb_dap_server *server, struct prb_dap_debuggee *debuggee,
                         struct prb_error *err)
{
    struct prb_dap_backend *backend = prb_dap_live_open(debuggee->pid, take_event, debuggee, err);
    pthread_mutex_lock(&server->lock);
    debuggee->backend = backend;
    if (!backend)
        *debuggee = (struct prb_dap_debuggee){0};
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return backend != NULL;
}

static bool is_client_gone(const struct prb_dap_session *session)
{
    struct pollfd fd = {.fd = session->in, .events = POLLRDHUP};
    return poll(&fd, 1, 0) == 1;
}

/* The lock is held.  Wait for a process that a session is leaving, or will as soon as it sees that
 * its client is gone: clients that restart connect at once. */
static struct prb_dap_debuggee *find_settled(struct prb_dap_server *server, pid_t pid)
{
    struct prb_dap_debuggee *debuggee;
    double now = prb_clock_s();
    while ((debuggee = find(server, pid)) && (debuggee->owner || !debuggee->backend)) {
        bool stays = debuggee->owner && !is_client_gone(debuggee->owner);
        struct timespec until = prb_clock_timespec(now + (stays ? MOMENT_S : LEAVING_S));
        if (pthread_cond_timedwait(&server->changed, &server->lock, &until) == ETIMEDOUT)
            break;
    }
    return debuggee;
}

void prb_dap_debuggee_release(struct prb_dap_host *host, struct prb_dap_backend *backend,
                              json_t *stopped, bool keep)
{
    struct prb_dap_server *server = (struct prb_dap_server *)host;
    struct prb_dap_debuggee *debuggee = NULL;
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < PRB_DAP_SESSIONS_MAX && !debuggee; i++)
        if (server->debuggees[i].pid && server->debuggees[i].backend == backend)
            debuggee = &server->debuggees[i];
    if (debuggee)
        debuggee->owner = NULL;
    if (debuggee && !keep)
        debuggee->backend = NULL; /* nobody may claim it now */
    while (debuggee && debuggee->in_use)
        pthread_cond_wait(&server->changed, &server->lock);
    if (debuggee && stopped && !debuggee->stopped)
        debuggee->stopped = json_incref(stopped);
    pthread_mutex_unlock(&server->lock);
    if (debuggee && keep)
        return;
    prb_dap_backend_close(backend);
    pthread_mutex_lock(&server->lock);
    if (debuggee) {
        json_decref(debuggee->stopped);
        *debuggee = (struct prb_dap_debuggee){0};
    }
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

struct prb_dap_backend *prb_dap_debuggee_claim(struct prb_dap_host *host, pid_t pid,
                                               struct prb_dap_session *session,
                                               json_t **stopped_out, struct prb_error *err)
{
    struct prb_dap_server *server = (struct prb_dap_server *)host;
    *stopped_out = NULL;
    if (!prb_dap_debuggee_allows(host, pid, err))
        return NULL;
    pthread_mutex_lock(&server->lock);
    struct prb_dap_debuggee *debuggee = find_settled(server, pid);
    bool busy = debuggee && (debuggee->owner || !debuggee->backend), known = debuggee && !busy;
    if (!debuggee && (debuggee = find(server, 0)))
        *debuggee = (struct prb_dap_debuggee){.pid = pid, .server = server};
    if (debuggee && !busy)
        debuggee->owner = session;
    if (known && debuggee->stopped)
        *stopped_out = json_incref(debuggee->stopped);
    pthread_mutex_unlock(&server->lock);
    if (busy || !debuggee) {
        prb_fail(err, PRB_BUSY,
                 busy ? "process %d is being debugged by another client of this server"
                      : "this server debugs too many processes to add process %d",
                 (int)pid);
        return PRB_NULL(prb_error_remedy(err, "disconnect the other one first"));
    }
    if (!known && !open_backend(server, debuggee, err))
        return NULL;
    struct prb_dap_backend *backend = debuggee->backend;
    if (prb_dap_debuggee_allows(host, pid, err)) /* it may have started another program meanwhile */
        return backend;
    json_decref(*stopped_out);
    *stopped_out = NULL;
    prb_dap_debuggee_release(host, backend, NULL, false);
    return NULL;
}

bool prb_dap_debuggee_pause(struct prb_dap_server *server, pid_t pid, struct prb_error *err)
{
    struct prb_dap_debuggee *debuggee = find(server, 0);
    *debuggee = (struct prb_dap_debuggee){.pid = pid, .server = server};
    if (!open_backend(server, debuggee, err))
        return false;
    const struct prb_dap_call attach = {.method = "attach"}, pause = {.method = "pause"};
    json_t *answer = debuggee->backend->ops->call(debuggee->backend, &attach, err);
    json_t *paused = answer ? debuggee->backend->ops->call(debuggee->backend, &pause, err) : NULL;
    json_decref(answer);
    json_decref(paused);
    if (!paused)
        prb_dap_debuggee_release(&server->host, debuggee->backend, NULL, false);
    return paused != NULL;
}

json_t *prb_dap_debuggee_ask(struct prb_dap_server *server, pid_t pid, const char *method,
                             struct prb_error *err)
{
    pthread_mutex_lock(&server->lock);
    struct prb_dap_debuggee *debuggee = find(server, pid);
    struct prb_dap_backend *backend = debuggee ? debuggee->backend : NULL;
    if (backend) /* so that it is not closed meanwhile */
        debuggee->in_use++;
    pthread_mutex_unlock(&server->lock);
    if (!backend)
        return PRB_NULL(
            prb_fail(err, PRB_BUSY, "another client is attaching to process %d", (int)pid));
    const struct prb_dap_call call = {.method = method};
    json_t *answer = backend->ops->call(backend, &call, err);
    pthread_mutex_lock(&server->lock);
    debuggee->in_use--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return answer;
}

bool prb_dap_debuggee_stop(struct prb_dap_server *server, pid_t pid, struct prb_error *err)
{
    pthread_mutex_lock(&server->lock);
    bool known = find(server, pid) != NULL;
    pthread_mutex_unlock(&server->lock);
    if (!known)
        return prb_dap_debuggee_pause(server, pid, err);
    json_t *answer = prb_dap_debuggee_ask(server, pid, "pause", err);
    json_decref(answer);
    return answer != NULL;
}

bool prb_dap_debuggee_resume(struct prb_dap_server *server)
{
    bool found = false;
    for (size_t i = 0; i < PRB_DAP_SESSIONS_MAX; i++) {
        pthread_mutex_lock(&server->lock);
        struct prb_dap_debuggee *debuggee = &server->debuggees[i];
        struct prb_dap_backend *backend =
            debuggee->pid && !debuggee->owner ? debuggee->backend : NULL;
        if (backend) /* nobody may claim it now */
            debuggee->backend = NULL;
        pthread_mutex_unlock(&server->lock);
        if (!backend)
            continue;
        pthread_mutex_lock(&server->lock);
        while (debuggee->in_use)
            pthread_cond_wait(&server->changed, &server->lock);
        pthread_mutex_unlock(&server->lock);
        prb_dap_backend_close(backend);
        pthread_mutex_lock(&server->lock);
        json_decref(debuggee->stopped);
        *debuggee = (struct prb_dap_debuggee){0};
        pthread_cond_broadcast(&server->changed);
        pthread_mutex_unlock(&server->lock);
        found = true;
    }
    return found;
}
