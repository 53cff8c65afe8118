/*
 * attach: a process (with the probe, or read only), a core or a snapshot.  It takes arguments
 * of ours and of the stock Python debugger, and ignores all others, as the protocol demands.
 */
#include "dap/attach/attach.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/secret.h"
#include "base/syscalls.h"
#include "dap/attach/program.h"
#include "dap/attach/relay.h"
#include "dap/requests/capabilities.h"
#include "dap/session/countdown.h"
#include "dap/session/watch.h"
#include "net/token.h"

#define REFUSALS_MAX 3
#define EVALUATE_S 30.0 /* time-out of an evaluation, where the configuration sets none */

bool prb_dap_shows_token(struct prb_dap_session *session, const json_t *request)
{
    static const struct {
        const char *command, *key;
    } shown_by[] = {
        {"attach", "token"}, {"launch", "token"}, {"pydevdAuthorize", "debugServerAccessToken"}};
    const char *command = json_string_value(json_object_get(request, "command"));
    const json_t *arguments = json_object_get(request, "arguments");
    for (size_t i = 0; i < sizeof shown_by / sizeof *shown_by; i++) {
        const char *token = json_string_value(json_object_get(arguments, shown_by[i].key));
        if (strcmp(command, shown_by[i].command) != 0 || !token || !session->host->token ||
            !prb_net_token_same(session->host->token, token))
            continue;
        pthread_mutex_lock(&session->lock);
        session->authorized = true;
        pthread_mutex_unlock(&session->lock);
        return true;
    }
    return false;
}

bool prb_dap_authorize(struct prb_dap_session *session, const char *token, struct prb_error *err)
{
    if (session->authorized)
        return true;
    if (++session->refused >= REFUSALS_MAX)
        prb_dap_session_leave(session);
    prb_fail(err, PRB_PERMISSION, token ? "the token is wrong" : "this server needs a token");
    return prb_error_remedy(
        err, "add the token that the server printed: \"token\": \"...\" in the configuration");
}

/* A number, or a string of digits; 0: absent. */
static bool take_pid(const json_t *arguments, const char *key, pid_t *out, struct prb_error *err)
{
    const json_t *given = prb_dap_get(arguments, key);
    json_int_t number = json_integer_value(given);
    char *end = NULL;
    if (json_is_string(given)) {
        const char *text = json_string_value(given);
        number = strtoll(text, &end, 10);
        if (!*text || *end)
            return prb_fail(err, PRB_USAGE, "%s must be a process id", key);
    } else if (given && !json_is_integer(given)) {
        return prb_fail(err, PRB_USAGE, "%s must be a process id", key);
    }
    if (given && (number <= 0 || number > INT_MAX))
        return prb_fail(err, PRB_USAGE, "%s must be a process id", key);
    *out = (pid_t)number;
    return true;
}

struct wish { /* what the client wants to attach to */
    pid_t pid;
    const char *file; /* a core or snapshot */
    const char *name; /* a part of a command line */
    const char *exe, *sysroot;
    bool look; /* read only, without the probe */
};

/* A server that debugs one target may run as another user than its clients: they get nothing else
 * through it.  Processes of the same job are checked when they are claimed. */
static bool is_allowed(const struct prb_dap_host *host, const struct wish *wish,
                       struct prb_error *err)
{
    bool bound = host->pid || host->file;
    if (!bound ||
        (!wish->file && !wish->name && (!wish->look || !wish->pid || wish->pid == host->pid)))
        return true;
    return prb_fail(err, PRB_PERMISSION,
                    "this server debugs one target, and the configuration names another");
}

static bool take_wish(const struct prb_dap_session *session, const json_t *arguments,
                      struct wish *wish, struct prb_error *err)
{
    pid_t child = 0;
    const char *snapshot = NULL;
    if (!take_pid(arguments, "processId", &wish->pid, err) ||
        !take_pid(arguments, "subProcessId", &child, err) ||
        !prb_dap_get_string(arguments, "core", &wish->file, err) ||
        !prb_dap_get_string(arguments, "snapshot", &snapshot, err) ||
        !prb_dap_get_string(arguments, "processName", &wish->name, err) ||
        !prb_dap_get_string(arguments, "executable", &wish->exe, err) ||
        !prb_dap_get_string(arguments, "sysroot", &wish->sysroot, err) ||
        !prb_dap_get_flag(arguments, "look", &wish->look, err))
        return false;
    wish->file = wish->file ? wish->file : snapshot;
    wish->pid = child ? child : wish->pid;
    if (!is_allowed(session->host, wish, err))
        return false;
    if (!wish->pid && !wish->file && !wish->name) {
        wish->pid = session->host->pid;
        wish->file = session->host->file;
        wish->look |= session->host->look;
    }
    if (!wish->pid && !wish->file && !wish->name)
        return prb_fail(err, PRB_USAGE,
                        session->host->relays
                            ? "attach needs a processId, a processName, a core, a snapshot or "
                              "connect"
                            : "attach needs a processId, a processName, a core or a snapshot");
    return true;
}

static bool read_only(struct prb_dap_session *session, struct prb_target *target,
                      struct prb_error *err)
{
    session->backend = prb_dap_readonly_open(target, err);
    if (!session->backend)
        return false;
    session->backend->event = prb_dap_target_event;
    session->backend->context = session;
    return true;
}

static bool open_file(struct prb_dap_session *session, const struct wish *wish,
                      struct prb_error *err)
{
    const struct prb_target_options options = {.exe = wish->exe, .sysroot = wish->sysroot};
    struct stat status;
    bool known = stat(wish->file, &status) == 0;
    struct prb_target *target = prb_target_open(wish->file, &options, err);
    const struct prb_target_info *info = target ? prb_target_info(target) : NULL;
    if (!target)
        return false;
    free(session->title);
    session->title = strdup(info->command ? info->command : wish->file);
    session->pid = info->kind == PRB_TARGET_PROCESS ? info->pid : 0;
    if (!read_only(session, target, err))
        return false;
    if (known)
        prb_dap_readonly_owned_by(session->backend, status.st_uid, status.st_gid);
    return true;
}

/* The pid of a process by its name; the process is opened only to read its command line. */
static bool find_named(const char *name, pid_t *pid_out, struct prb_error *err)
{
    struct prb_target *target = prb_target_open_name(name, err);
    if (!target)
        return false;
    *pid_out = prb_target_info(target)->pid;
    prb_target_close(target);
    return true;
}

static char *title_of(pid_t pid)
{
    char path[32], text[256];
    PRB_AUTO(prb_buf) struct prb_buf shown = {0};
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    long got = prb_read_text(path, text, sizeof text);
    while (got > 0 && !text[got - 1])
        got--;
    if (got > 0)
        prb_secret_mask(PRB_SECRET_ARGUMENTS, text, (size_t)got, &shown);
    for (size_t i = 0; i < shown.len; i++)
        if ((unsigned char)shown.data[i] < ' ' || (unsigned char)shown.data[i] > '~')
            shown.data[i] = ' ';
    while (shown.len && shown.data[shown.len - 1] == ' ')
        shown.data[--shown.len] = '\0';
    return shown.len ? prb_buf_steal(&shown) : strdup("python");
}

static bool open_process(struct prb_dap_session *session, pid_t pid, bool look,
                         struct prb_error *err)
{
    struct prb_dap_host *host = session->host;
    session->pid = pid;
    session->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    free(session->title);
    session->title = title_of(pid);
    if (look) {
        if (host->ops->allows && !host->ops->allows(host, pid, err))
            return false;
        struct prb_target *target = prb_target_open_pid(pid, err);
        return target && read_only(session, target, err) &&
               (!host->ops->allows || host->ops->allows(host, pid, err));
    }
    json_t *stopped = NULL;
    struct prb_dap_backend *backend = host->ops->claim(host, pid, session, &stopped, err);
    if (!backend)
        return false;
    pthread_mutex_lock(&session->lock);
    session->backend = backend;
    if (stopped) {
        json_decref(session->stopped);
        session->stopped = stopped;
        session->stop_unsent = true;
    }
    pthread_mutex_unlock(&session->lock);
    return true;
}

/* A setting that is a number of seconds. */
static bool seconds_of(const struct prb_dap_session *session, const char *name, double otherwise,
                       double *out, struct prb_error *err)
{
    const json_t *seconds = prb_dap_get(session->settings, name);
    if (seconds && (!json_is_number(seconds) || json_number_value(seconds) < 0))
        return prb_fail(err, PRB_USAGE, "%s must be a number of seconds", name);
    *out = seconds ? json_number_value(seconds) : otherwise;
    return true;
}

/* Whether the agent is to show the output of the target: unless the configuration forbids it, or we
 * read the output of a launched program ourselves, or it has a terminal. */
static bool wants_output(const struct prb_dap_session *session)
{
    const json_t *wanted = prb_dap_get(session->settings, "redirectOutput");
    bool elsewhere = session->program && (prb_dap_program_is_read(session->program) || !wanted);
    return !json_is_false(wanted) && !elsewhere &&
           session->backend->ops->has(session->backend, "output");
}

/* Give the agent the settings that it needs; its answer becomes session->facts.  All that an attach
 * asks of it is in this one question: each takes the GIL of a job that computes. */
static bool configure_agent(struct prb_dap_session *session, struct prb_error *err)
{
    double of_repr;
    static const char *const settings[] = {
        "justMyCode",
        "maxString",
        "reprTimeout",
        "showReturnValue",
        "breakpointHook",
        "rules",
        "allowWriteMemory",
        "variablePresentation",
        "maxExceptionStackFrames",
        "breakOnSystemExit",
        "breakOnSystemExitZero",
        "django",
        "flask",
        "steppingResumesAllThreads",
        "showNativeFrames",
        "showNativeThreads",
    };
    if (!seconds_of(session, "reprTimeout", 0, &of_repr, err))
        return false;
    json_t *arguments = json_object();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (prb_dap_get(session->settings, settings[i]))
            json_object_set(arguments, settings[i], prb_dap_get(session->settings, settings[i]));
    json_object_set_new(arguments, "redirectOutput", json_boolean(wants_output(session)));
    json_object_set_new(arguments, "threads", json_boolean(prb_dap_session_is_live(session)));
    if (session->host->look)
        json_object_set_new(arguments, "still", json_true());
    session->facts = prb_dap_ask(session, "attach", arguments, 0, err);
    json_decref(arguments);
    return session->facts != NULL;
}

static bool take_settings(struct prb_dap_session *session, struct prb_error *err)
{
    const char *cwd = json_string_value(json_object_get(session->facts, "cwd"));
    const char *type = NULL, *local = NULL, *remote = NULL;
    if (!prb_dap_get_string(session->settings, "type", &type, err) ||
        !prb_dap_get_string(session->settings, "localRoot", &local, err) ||
        !prb_dap_get_string(session->settings, "remoteRoot", &remote, err) ||
        !prb_dap_paths_set(&session->paths, prb_dap_get(session->settings, "pathMappings"), cwd,
                           err) ||
        !seconds_of(session, "evaluateTimeout", EVALUATE_S, &session->evaluate_timeout, err))
        return false;
    session->debugpy = type && (strcmp(type, "debugpy") == 0 || strcmp(type, "python") == 0);
    if (!local || !remote)
        return true;
    json_t *one = json_pack("[{s:s, s:s}]", "localRoot", local, "remoteRoot", remote);
    bool good = prb_dap_paths_set(&session->paths, one, cwd, err);
    json_decref(one);
    return good;
}

static void send_beginning(struct prb_dap_session *session, const char *how)
{
    json_t *process =
        json_pack("{s:s, s:b, s:s, s:i}", "name", session->title ? session->title : "python",
                  "isLocalProcess", session->pid != 0, "startMethod", how, "pointerSize", 64);
    if (session->pid)
        json_object_set_new(process, "systemProcessId", json_integer(session->pid));
    json_t *changed = prb_dap_capabilities_changed(session);
    if (json_object_size(changed))
        prb_dap_event(session, "capabilities", json_pack("{s:O}", "capabilities", changed));
    json_decref(changed);
    prb_dap_event(session, "process", process);
    prb_dap_event(session, "initialized", NULL);
}

static bool begin(struct prb_dap_session *session, const char *how, struct prb_error *err)
{
    if (!configure_agent(session, err) || !take_settings(session, err))
        return false;
    json_t *stopped = json_object_get(session->facts, "stopped");
    struct prb_dap_countdown *countdown = prb_dap_countdown_open(session);
    pthread_mutex_lock(&session->lock);
    session->countdown = countdown;
    pthread_mutex_unlock(&session->lock);
    if (json_is_object(stopped))
        prb_dap_target_event(session, "stopped", stopped);
    const char *hidden = json_string_value(json_object_get(session->facts, "outputHidden"));
    if (hidden)
        prb_dap_say(session, false, "probing: the output of the target is not shown: %.200s",
                    hidden);
    pthread_mutex_lock(&session->lock);
    session->state = PRB_DAP_IS_ATTACHED;
    pthread_mutex_unlock(&session->lock);
    send_beginning(session, how);
    struct prb_dap_watch *watch = prb_dap_watch_open(session);
    pthread_mutex_lock(&session->lock);
    session->watch = watch;
    pthread_mutex_unlock(&session->lock);
    return true;
}

/* As before attach, so that the client may try again. */
static bool give_up(struct prb_dap_session *session)
{
    struct prb_dap_backend *backend = session->backend;
    session->backend = NULL;
    if (backend)
        session->host->ops->release(session->host, backend, NULL, false);
    if (session->pidfd >= 0)
        close(PRB_STEAL_FD(session->pidfd));
    session->pid = 0;
    prb_dap_paths_clear(&session->paths);
    session->paths.uris = session->client.uris;
    json_decref(session->facts);
    json_decref(session->settings);
    session->facts = session->settings = NULL;
    return false;
}

bool prb_dap_attach_to(struct prb_dap_session *session, pid_t pid, json_t *settings,
                       const char *how, struct prb_error *err)
{
    session->settings = json_deep_copy(settings);
    json_object_del(session->settings, "token");
    return (open_process(session, pid, false, err) && begin(session, how, err)) || give_up(session);
}

static bool handle_attach(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                          struct prb_error *err)
{
    const char *token = NULL;
    struct wish wish = {0};
    (void)body_out;
    if (session->state != PRB_DAP_INITIALIZED)
        return prb_fail(err, PRB_USAGE, "this session is already attached");
    if (!prb_dap_get_string(arguments, "token", &token, err) ||
        !prb_dap_authorize(session, token, err))
        return false;
    if (prb_dap_relay_wanted(session, arguments))
        return prb_dap_relay_open(session, arguments, err);
    if (!take_wish(session, arguments, &wish, err) ||
        (wish.name && !find_named(wish.name, &wish.pid, err)))
        return false;
    if (wish.pid && !wish.look)
        return prb_dap_attach_to(session, wish.pid, arguments, "attach", err);
    session->settings = json_deep_copy(arguments);
    json_object_del(session->settings, "token");
    bool opened =
        wish.pid ? open_process(session, wish.pid, true, err) : open_file(session, &wish, err);
    return (opened && begin(session, "attach", err)) || give_up(session);
}

const struct prb_dap_request prb_dap_attach = {
    .command = "attach",
    .handle = handle_attach,
};

static bool pause_now(struct prb_dap_session *session, struct prb_error *err)
{
    json_t *none = json_pack("{s:i}", "threadId", 0);
    json_t *answer = prb_dap_ask(session, "pause", none, 0, err);
    json_decref(none);
    json_decref(answer);
    return answer != NULL;
}

static bool handle_configuration_done(struct prb_dap_session *session, json_t *arguments,
                                      json_t **body_out, struct prb_error *err)
{
    bool pause = false;
    (void)arguments, (void)body_out;
    if (!prb_dap_get_flag(session->settings, "stopOnEntry", &pause, err))
        return false;
    /* A read-only back end has nothing to show before the first view. */
    pause |= session->backend && strcmp(session->backend->ops->name, "look") == 0;
    pthread_mutex_lock(&session->lock);
    bool stopped = session->stopped != NULL;
    session->state = PRB_DAP_CONFIGURED;
    json_t *unsent = session->stop_unsent ? json_incref(session->stopped) : NULL;
    session->stop_unsent = false;
    pthread_mutex_unlock(&session->lock);
    if (unsent)
        prb_dap_event(session, "stopped", unsent);
    bool good = !pause || stopped || pause_now(session, err);
    if (session->program)
        prb_dap_program_let_go(session->program);
    if (json_is_true(json_object_get(session->facts, "waits"))) /* at its birth */
        json_decref(prb_dap_ask(session, "configured", NULL, 0, NULL));
    return good;
}

const struct prb_dap_request prb_dap_configuration_done = {
    .command = "configurationDone",
    .capabilities = "supportsConfigurationDoneRequest",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_configuration_done,
};
