/*
 * Child sessions: one for each process that the target started (`subProcess`: DataLoader workers
 * and others) and for each rank of its job (`ranks`).  The client is asked to open it, by the
 * request startDebugging; a client without that request, by the stock Python debugger's event.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "dap/session/watch.h"

static bool wants(const struct prb_dap_session *session, const char *setting)
{
    return json_is_true(json_object_get(session->settings, setting));
}

bool prb_dap_children_wanted(const struct prb_dap_session *session)
{
    return wants(session, "subProcess") || wants(session, "ranks");
}

static const struct prb_process *find(const struct prb_process_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].pid == pid)
            return &list->items[i];
    return NULL;
}

static bool descends(const struct prb_process_list *list, const struct prb_process *one, pid_t from)
{
    enum { GENERATIONS_MAX = 16 };
    for (int i = 0; one && i < GENERATIONS_MAX; i++, one = find(list, one->ppid))
        if (one->ppid == from)
            return true;
    return false;
}

/* Python's own helper processes: nobody wants to debug them. */
static bool is_helper(const struct prb_process *one)
{
    return one->command &&
           (strstr(one->command, "resource_tracker") || strstr(one->command, "semaphore_tracker") ||
            strstr(one->command, "multiprocessing.forkserver"));
}

static bool is_new(struct prb_dap_children *children, pid_t pid)
{
    for (size_t i = 0; i < children->count; i++)
        if (children->seen[i] == pid)
            return false;
    if (children->count == PRB_DAP_CHILDREN_MAX)
        return false;
    children->seen[children->count++] = pid;
    return true;
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

/* The arguments of the child session's attach: the parent's, without those about its target. */
static json_t *configuration_of(const struct prb_dap_session *session,
                                const struct prb_process *one, bool child)
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
    if (one->rank >= 0 && !child)
        snprintf(name, sizeof name, "rank %d (%d)", one->rank, (int)one->pid);
    else
        snprintf(name, sizeof name, "child %d", (int)one->pid);
    if (!session->known) /* it has shown the token */
        json_object_set_new(configuration, "token", json_string(session->host->token));
    if (!json_object_get(configuration, "type"))
        json_object_set_new(configuration, "type",
                            json_string(session->debugpy ? "debugpy" : "probing"));
    json_object_set_new(configuration, "name", json_string(name));
    json_object_set_new(configuration, "request", json_string("attach"));
    json_t *connect = session->host->address ? our_address(session->in) : NULL;
    json_object_set_new(configuration, connect ? "subProcessId" : "processId",
                        json_integer(one->pid));
    if (connect)
        json_object_set_new(configuration, "connect", connect);
    return configuration;
}

static void announce(struct prb_dap_session *session, const struct prb_process *one, bool child)
{
    if (session->client.start_debugging) {
        json_t *wanted = json_pack("{s:s, s:o}", "request", "attach", "configuration",
                                   configuration_of(session, one, child));
        prb_dap_request_client(session, "startDebugging", wanted, 0, NULL, NULL);
    } else if (session->debugpy && session->host->address) {
        prb_dap_send(session, "debugpyAttach", configuration_of(session, one, child));
    } else {
        prb_dap_say(session, false,
                    "probing: process %d belongs to this job; attach to it in another session",
                    (int)one->pid);
    }
}

/* Whether the server would let this client debug the process. */
static bool is_ours(const struct prb_dap_session *session, pid_t pid)
{
    struct prb_dap_host *host = session->host;
    return !host->ops->allows || host->ops->allows(host, pid, NULL);
}

void prb_dap_children_announce(struct prb_dap_session *session, struct prb_dap_children *children)
{
    struct prb_process_list *list = prb_process_list(NULL);
    const struct prb_process *own = list ? find(list, session->pid) : NULL;
    for (size_t i = 0; own && i < list->count; i++) {
        const struct prb_process *one = &list->items[i];
        bool child = wants(session, "subProcess") && descends(list, one, own->pid);
        bool rank = wants(session, "ranks") && one != own && one->rank >= 0 && own->rank >= 0 &&
                    one->ppid == own->ppid && own->ppid > 1;
        if ((child || rank) && !is_helper(one) && is_ours(session, one->pid) &&
            is_new(children, one->pid))
            announce(session, one, child);
    }
    prb_process_list_free(list);
}
