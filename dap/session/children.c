/*
 * Child sessions: one for each process that the target started (`subProcess`: DataLoader workers
 * and others) and for each rank of its job (`ranks`).  The client is asked to open it, by the
 * request startDebugging; a client without that request, by the stock Python debugger's event.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "dap/session/watch.h"
#include "proc/stat.h"

static bool wants(const struct prb_dap_session *session, const char *setting)
{
    return json_is_true(json_object_get(session->settings, setting));
}

/* A child that is younger may not have come to its start-up hook yet, where it announces itself. */
#define YOUNG_S 1

/* Whether the client can open a session for a process that it did not name. */
static bool can_open(const struct prb_dap_session *session)
{
    return session->client.start_debugging || (session->debugpy && session->host->address);
}

/*
 * The default: a program that the user starts to debug it is debugged whole, as in the stock Python
 * debugger.  A job that runs already is somebody's work: its children do not wait for a debugger
 * unless the user has asked for that.
 */
static bool wants_children(const struct prb_dap_session *session)
{
    const json_t *given = prb_dap_get(session->settings, "subProcess");
    return given ? json_is_true(given) : session->program && can_open(session);
}

bool prb_dap_children_wanted(const struct prb_dap_session *session)
{
    return wants_children(session) || wants(session, "ranks");
}

bool prb_dap_children_taken(const struct prb_dap_session *session)
{
    return wants_children(session) && can_open(session);
}

static bool read_stat(pid_t pid, struct prb_stat *out)
{
    char folder[32];
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    return prb_stat_of(folder, out);
}

/* ---- who is known ---- */

static struct prb_dap_child *known(struct prb_dap_children *children, pid_t pid)
{
    for (size_t i = 0; i < children->count; i++)
        if (children->seen[i].pid == pid)
            return &children->seen[i];
    return NULL;
}

/* Those that have ended make place. */
static void forget_ended(struct prb_dap_children *children)
{
    size_t kept = 0;
    for (size_t i = 0; i < children->count; i++) {
        struct prb_stat stat;
        if (read_stat(children->seen[i].pid, &stat) &&
            stat.field[PRB_STAT_STARTTIME] == children->seen[i].started)
            children->seen[kept++] = children->seen[i];
    }
    children->count = kept;
}

/* Whether the client does not know it yet.  born: it says so itself; it does so again when it has
 * started another program, whose session is another one. */
static bool add(struct prb_dap_children *children, pid_t pid, bool born)
{
    struct prb_stat stat;
    if (!read_stat(pid, &stat))
        return false;
    pthread_mutex_lock(&children->lock);
    struct prb_dap_child *one = known(children, pid);
    if ((one && one->started != stat.field[PRB_STAT_STARTTIME]) ||
        children->count == PRB_DAP_CHILDREN_MAX) {
        forget_ended(children);
        one = known(children, pid);
    }
    bool announced = one && !(born && one->born);
    if (one)
        one->born |= born;
    else if (children->count < PRB_DAP_CHILDREN_MAX)
        children->seen[children->count++] =
            (struct prb_dap_child){pid, stat.field[PRB_STAT_STARTTIME], born};
    else
        announced = true;
    pthread_mutex_unlock(&children->lock);
    return !announced;
}

/* Whether a process comes from the target.  Not if it comes from another child that the client
 * knows: that one's session has it. */
static bool descends(struct prb_dap_children *children, pid_t pid, pid_t from)
{
    enum { GENERATIONS_MAX = 16 };
    for (int i = 0; i < GENERATIONS_MAX; i++) {
        struct prb_stat stat;
        if (!read_stat(pid, &stat) || stat.field[PRB_STAT_PPID] <= 1)
            return false;
        pid = (pid_t)stat.field[PRB_STAT_PPID];
        if (pid == from)
            return true;
        pthread_mutex_lock(&children->lock);
        bool has_session = known(children, pid) != NULL;
        pthread_mutex_unlock(&children->lock);
        if (has_session)
            return false;
    }
    return false;
}

/* Python's own helper processes: nobody wants to debug them. */
static bool is_helper(const struct prb_process *one)
{
    return one->command &&
           (strstr(one->command, "resource_tracker") || strstr(one->command, "semaphore_tracker") ||
            strstr(one->command, "multiprocessing.forkserver"));
}

/* The address at which this client reached us, for its other sessions: a server may listen on all
 * addresses. */
static json_t *our_address(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "";
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return NULL;
    bool six = address.ss_family == AF_INET6;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
    if (!inet_ntop(address.ss_family, six ? (const void *)&v6->sin6_addr : &v4->sin_addr, host,
                   sizeof host))
        return NULL;
    return json_pack("{s:s, s:i}", "host", host, "port", ntohs(six ? v6->sin6_port : v4->sin_port));
}

static json_t *address_of(const struct prb_dap_session *session)
{
    const struct prb_dap_host *host = session->host;
    const char *colon = host->reached ? strrchr(host->reached, ':') : NULL;
    if (!host->address)
        return NULL;
    if (!colon)
        return our_address(session->in);
    bool bracket = *host->reached == '[';
    return json_pack("{s:s%, s:i}", "host", host->reached + bracket,
                     (size_t)(colon - host->reached) - 2 * bracket, "port",
                     (int)strtol(colon + 1, NULL, 10));
}

/* The arguments of the child session's attach: the parent's, without those about its target. */
static json_t *configuration_of(const struct prb_dap_session *session, pid_t pid, int rank)
{
    /* About the parent itself, how it was started, and its window: VS Code would run its task again
     * for every worker. */
    static const char *const of_target[] = {
        "processId",     "processName",   "program",
        "module",        "args",          "ranks",
        "stopOnEntry",   "subProcessId",  "connect",
        "host",          "port",          "listen",
        "console",       "env",           "envFile",
        "preLaunchTask", "postDebugTask", "serverReadyAction",
        "code",          "presentation",  "internalConsoleOptions"};
    char name[80];
    json_t *configuration = json_copy(session->settings);
    for (size_t i = 0; i < sizeof of_target / sizeof *of_target; i++)
        json_object_del(configuration, of_target[i]);
    if (rank >= 0)
        snprintf(name, sizeof name, "rank %d (%d)", rank, (int)pid);
    else
        snprintf(name, sizeof name, "child %d", (int)pid);
    json_object_set_new(configuration, "subProcess", json_boolean(wants_children(session)));
    if (!session->known) /* it has shown the token */
        json_object_set_new(configuration, "token", json_string(session->host->token));
    if (!json_object_get(configuration, "type"))
        json_object_set_new(configuration, "type",
                            json_string(session->debugpy ? "debugpy" : "probing"));
    json_object_set_new(configuration, "name", json_string(name));
    json_object_set_new(configuration, "request", json_string("attach"));
    json_t *connect = address_of(session);
    json_object_set_new(configuration, connect ? "subProcessId" : "processId", json_integer(pid));
    if (connect)
        json_object_set_new(configuration, "connect", connect);
    return configuration;
}

/* rank: of another rank of the job; -1: a child of the target. */
static void announce(struct prb_dap_session *session, pid_t pid, int rank)
{
    if (session->client.start_debugging) {
        json_t *wanted = json_pack("{s:s, s:o}", "request", "attach", "configuration",
                                   configuration_of(session, pid, rank));
        prb_dap_start_debugging(session, wanted, pid);
    } else if (can_open(session)) {
        prb_dap_send(session, "debugpyAttach", configuration_of(session, pid, rank));
    } else {
        prb_dap_say(session, false,
                    "probing: process %d belongs to this job; attach to it in another session",
                    (int)pid);
    }
}

/* Whether the server would let this client debug the process. */
static bool is_ours(const struct prb_dap_session *session, pid_t pid)
{
    struct prb_dap_host *host = session->host;
    return !host->ops->allows || host->ops->allows(host, pid, NULL);
}

static bool is_gone(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool gone = session->gone;
    pthread_mutex_unlock(&session->lock);
    return gone;
}

void prb_dap_children_announce(struct prb_dap_session *session, struct prb_dap_children *children)
{
    struct prb_process_list *list = prb_process_list(NULL);
    const struct prb_process *own = list ? prb_process_find(list, session->pid) : NULL;
    double now = (double)time(NULL);
    if (is_gone(session)) /* who has it now offers its children */
        own = NULL;
    for (size_t i = 0; own && i < list->count; i++) {
        const struct prb_process *one = &list->items[i];
        bool child = wants_children(session) && one->started + YOUNG_S < now &&
                     descends(children, one->pid, own->pid);
        bool rank = wants(session, "ranks") && one != own && one->rank >= 0 && own->rank >= 0 &&
                    one->ppid == own->ppid && own->ppid > 1;
        if ((child || rank) && !is_helper(one) && is_ours(session, one->pid) &&
            add(children, one->pid, false))
            announce(session, one->pid, child ? -1 : one->rank);
    }
    prb_process_list_free(list);
}

bool prb_dap_children_born(struct prb_dap_session *session, struct prb_dap_children *children,
                           pid_t pid)
{
    if (!descends(children, pid, session->pid) || !is_ours(session, pid))
        return false;
    if (add(children, pid, true))
        announce(session, pid, -1);
    return true;
}

static void announce_replaced(struct prb_dap_session *session, bool found)
{
    pthread_mutex_lock(&session->lock);
    bool known = session->replaced && session->found_replaced;
    session->replaced = true;
    session->found_replaced = found;
    pthread_mutex_unlock(&session->lock);
    if (!known) /* by looking, before its start-up hook came to say so */
        announce(session, session->pid, -1);
}

void prb_dap_children_replaced(struct prb_dap_session *session)
{
    announce_replaced(session, false);
}

bool prb_dap_children_find_replaced(struct prb_dap_session *session)
{
    struct prb_process_list *list = prb_process_list(NULL);
    const struct prb_process *own = list ? prb_process_find(list, session->pid) : NULL;
    bool replaced = own && !own->has_probe; /* after detach its library is still there */
    prb_process_list_free(list);
    if (replaced)
        announce_replaced(session, true);
    return replaced;
}
