/* Processes that are debugged through a server: one session each; some are kept standing for the
 * next one. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "dap/server/server.h"

#define LEAVING_S 5 /* for a session to leave its process */
#define MOMENT_S 1  /* for one that has lost its client to begin to */

static void happened(void *context, const char *event, json_t *body)
{
    struct prb_dap_held *held = context;
    struct prb_dap_server *server = held->server;
    pthread_mutex_lock(&server->lock);
    if (strcmp(event, "stopped") == 0) {
        json_decref(held->stopped);
        held->stopped = json_incref(body);
        pthread_cond_broadcast(&server->changed);
    } else if (strcmp(event, "continued") == 0 || strcmp(event, "gone") == 0) {
        json_decref(held->stopped);
        held->stopped = NULL;
    }
    struct prb_dap_session *owner = held->owner;
    held->telling += owner != NULL;
    pthread_mutex_unlock(&server->lock);
    if (!owner)
        return;
    prb_dap_session_happened(owner, event, body);
    pthread_mutex_lock(&server->lock);
    held->telling--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* The lock is held. */
static struct prb_dap_held *find(struct prb_dap_server *server, pid_t pid)
{
    for (size_t i = 0; i < PRB_DAP_SESSIONS_MAX; i++)
        if (server->held[i].pid == pid)
            return &server->held[i];
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
    char path[32], text[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    prb_read_text(path, text, sizeof text);
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool has_group(const struct prb_ids *ids, gid_t group)
{
    for (unsigned i = 0; i < ids->more_count; i++)
        if (ids->more[i] == group)
            return true;
    return ids->groups[0] == group;
}

/* Whether a process has no right that the target had when the server began.  The server may run
 * with more rights than its clients; a program of another user, or one that can become another (its
 * saved id is not the target's), would lend them those. */
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

static bool allows(struct prb_dap_host *host, pid_t pid, struct prb_error *err)
{
    const struct prb_dap_server *server = (struct prb_dap_server *)host;
    if (!server->options->pid && !server->options->file)
        return true;
    if (!is_of_job(server, pid))
        return prb_fail(err, PRB_PERMISSION,
                        "this server is about process %d, and %d is none of its job",
                        (int)server->options->pid, (int)pid);
    return has_no_more(server, pid) ||
           prb_fail(err, PRB_PERMISSION,
                    "process %d has other rights than process %d had when this server began",
                    (int)pid, (int)server->options->pid);
}

static bool open_held(struct prb_dap_server *server, struct prb_dap_held *held,
                      struct prb_error *err)
{
    struct prb_dap_backend *backend = prb_dap_live_open(held->pid, happened, held, err);
    pthread_mutex_lock(&server->lock);
    held->backend = backend;
    if (!backend)
        *held = (struct prb_dap_held){0};
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return backend != NULL;
}

/* The lock is held.  A process that is just being left is waited for, and a moment also one whose
 * client may be gone without a word: clients that restart come at once. */
static struct prb_dap_held *find_settled(struct prb_dap_server *server, pid_t pid)
{
    struct prb_dap_held *held;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    while ((held = find(server, pid)) && (held->owner || !held->backend)) {
        struct timespec until = now;
        until.tv_sec += held->owner ? MOMENT_S : LEAVING_S;
        if (pthread_cond_timedwait(&server->changed, &server->lock, &until) == ETIMEDOUT)
            break;
    }
    return held;
}

static void release(struct prb_dap_host *host, struct prb_dap_backend *backend, json_t *stopped,
                    bool keep)
{
    struct prb_dap_server *server = (struct prb_dap_server *)host;
    struct prb_dap_held *held = NULL;
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < PRB_DAP_SESSIONS_MAX && !held; i++)
        if (server->held[i].pid && server->held[i].backend == backend)
            held = &server->held[i];
    if (held)
        held->owner = NULL;
    if (held && !keep)
        held->backend = NULL; /* nobody may claim it now */
    while (held && held->telling)
        pthread_cond_wait(&server->changed, &server->lock);
    if (held && stopped && !held->stopped)
        held->stopped = json_incref(stopped);
    pthread_mutex_unlock(&server->lock);
    if (held && keep)
        return;
    prb_dap_backend_close(backend);
    pthread_mutex_lock(&server->lock);
    if (held) {
        json_decref(held->stopped);
        *held = (struct prb_dap_held){0};
    }
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static struct prb_dap_backend *claim(struct prb_dap_host *host, pid_t pid,
                                     struct prb_dap_session *session, json_t **stopped_out,
                                     struct prb_error *err)
{
    struct prb_dap_server *server = (struct prb_dap_server *)host;
    *stopped_out = NULL;
    if (!allows(host, pid, err))
        return NULL;
    pthread_mutex_lock(&server->lock);
    struct prb_dap_held *held = find_settled(server, pid);
    bool busy = held && (held->owner || !held->backend), kept = held && !busy;
    if (!held && (held = find(server, 0)))
        *held = (struct prb_dap_held){.pid = pid, .server = server};
    if (held && !busy)
        held->owner = session;
    if (kept && held->stopped)
        *stopped_out = json_incref(held->stopped);
    pthread_mutex_unlock(&server->lock);
    if (busy || !held) {
        prb_fail(err, PRB_BUSY,
                 busy ? "process %d is being debugged by another client of this server"
                      : "too many processes are debugged here for process %d",
                 (int)pid);
        return PRB_NULL(prb_error_remedy(err, "disconnect the other one first"));
    }
    if (!kept && !open_held(server, held, err))
        return NULL;
    struct prb_dap_backend *backend = held->backend;
    if (allows(host, pid, err)) /* it may have begun another program meanwhile */
        return backend;
    json_decref(*stopped_out);
    *stopped_out = NULL;
    release(host, backend, NULL, false);
    return NULL;
}

const struct prb_dap_host_ops prb_dap_host_server = {
    .allows = allows, .admits = prb_dap_server_admits, .claim = claim, .release = release};

bool prb_dap_held_pause(struct prb_dap_server *server, pid_t pid, struct prb_error *err)
{
    struct prb_dap_held *held = find(server, 0);
    *held = (struct prb_dap_held){.pid = pid, .server = server};
    if (!open_held(server, held, err))
        return false;
    const struct prb_dap_call attach = {.method = "attach"}, pause = {.method = "pause"};
    json_t *answer = held->backend->ops->call(held->backend, &attach, err);
    json_t *paused = answer ? held->backend->ops->call(held->backend, &pause, err) : NULL;
    json_decref(answer);
    json_decref(paused);
    if (!paused)
        release(&server->host, held->backend, NULL, false);
    return paused != NULL;
}

json_t *prb_dap_held_ask(struct prb_dap_server *server, pid_t pid, const char *method,
                         struct prb_error *err)
{
    pthread_mutex_lock(&server->lock);
    struct prb_dap_held *held = find(server, pid);
    struct prb_dap_backend *backend = held ? held->backend : NULL;
    if (backend) /* it is not closed meanwhile */
        held->telling++;
    pthread_mutex_unlock(&server->lock);
    if (!backend)
        return PRB_NULL(prb_fail(err, PRB_BUSY, "process %d is just being attached to", (int)pid));
    const struct prb_dap_call call = {.method = method};
    json_t *answer = backend->ops->call(backend, &call, err);
    pthread_mutex_lock(&server->lock);
    held->telling--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return answer;
}

bool prb_dap_held_stop(struct prb_dap_server *server, pid_t pid, struct prb_error *err)
{
    pthread_mutex_lock(&server->lock);
    bool held = find(server, pid) != NULL;
    pthread_mutex_unlock(&server->lock);
    if (!held)
        return prb_dap_held_pause(server, pid, err);
    json_t *answer = prb_dap_held_ask(server, pid, "pause", err);
    json_decref(answer);
    return answer != NULL;
}

bool prb_dap_held_resume(struct prb_dap_server *server)
{
    bool found = false;
    for (size_t i = 0; i < PRB_DAP_SESSIONS_MAX; i++) {
        pthread_mutex_lock(&server->lock);
        struct prb_dap_held *held = &server->held[i];
        struct prb_dap_backend *backend = held->pid && !held->owner ? held->backend : NULL;
        if (backend) /* nobody may claim it now */
            held->backend = NULL;
        pthread_mutex_unlock(&server->lock);
        if (!backend)
            continue;
        pthread_mutex_lock(&server->lock);
        while (held->telling)
            pthread_cond_wait(&server->changed, &server->lock);
        pthread_mutex_unlock(&server->lock);
        prb_dap_backend_close(backend);
        pthread_mutex_lock(&server->lock);
        json_decref(held->stopped);
        *held = (struct prb_dap_held){0};
        pthread_cond_broadcast(&server->changed);
        pthread_mutex_unlock(&server->lock);
        found = true;
    }
    return found;
}
