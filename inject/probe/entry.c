/*
 * prb_probe_start: the one entry point of libprobe.so, and the functions that Python code in the target
 * gets from it.  It may be called twice, by two threads at once, and again after a detach.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "inject/probe/log.h"
#include "inject/probe/own_fds.h"
#include "inject/probe/part.h"
#include "inject/probe/python_switches.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"
#include "inject/probe/start.h"

#define ENVIRONMENT_MAX (1 << 20)
#define FOLLOW_MS 1000
#define END_WAIT 4 /* s, for a detach under way */

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static pid_t configured; /* the process whose environment the settings are from */
static char socket_path[320];

/* In a child of fork(2): no thread of the probe is here, whoever held a lock is not, either. */
static void forked(void)
{
    prb_server_reset();
    prb_parts_forked();
    starting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    socket_path[0] = '\0';
}

/* The settings as the environment has them.  A value that cannot be parsed is noted in the log and
 * ignored: it may be meant for somebody else.  An environment that is not to be trusted sets
 * nothing, since one setting names a program that is run.  folder: of the log; -1: there is none. */
static void configure(int folder, bool preloaded)
{
    PRB_AUTO_FREE char *text = malloc(ENVIRONMENT_MAX);
    struct prb_error err;
    long len = -1;
    if (text && !prb_environment_is_shut(preloaded))
        len = prb_socket_path_self("environ", text, ENVIRONMENT_MAX);
    prb_settings_reset();
    for (char *at = text; len > 0 && at < text + len; at += strlen(at) + 1)
        if (!prb_settings_set_variable(at, &err))
            prb_log(folder, "ignored in the environment: %s", err.text);
    prb_settings_on_change(prb_parts_configure);
    configured = getpid();
}

/* There is no place for a socket, as on a full disk. */
static void configure_alone(void)
{
    if (configured != getpid())
        configure(-1, true);
    prb_parts_configure_alone();
}

static bool begin(const struct prb_probe_call *call, struct prb_error *err)
{
    struct prb_socket_path place;
    bool preloaded = call->how && strcmp(call->how, PRB_HOW_PRELOAD) == 0;
    if (!prb_own_fds_register(forked))
        return prb_fail(err, PRB_NOMEM, "the target is out of memory");
    if (prb_server.owner && prb_server.owner != getpid())
        forked(); /* a child made without fork(2)'s handlers */
    if (prb_server.state == PRB_STATE_ENDS && !prb_server_wait(END_WAIT))
        return prb_fail(err, PRB_BUSY, "the probe is being detached");
    if (!prb_socket_path_make(&place, err)) {
        if (preloaded) /* nobody hears of it, and a crash is to be told all the same */
            configure_alone();
        return false;
    }
    if (configured != getpid())
        configure(place.folder, preloaded);
    bool set = !call->settings || prb_settings_set_lines(call->settings, err);
    if (set)
        prb_parts_configure();
    if (!set || !prb_server_start(&place, err)) {
        prb_own_fd_close(place.folder);
        return false;
    }
    snprintf(socket_path, sizeof socket_path, "%s/%s", place.path, place.name);
    return true;
}

static int active(void) { return prb_server_runs_here(); }

static int detach(void)
{
    if (!prb_server_runs_here())
        return 0;
    prb_server_stop();
    return prb_server_wait(END_WAIT) ? 0 : -1;
}

static int config_get(const char *key, char *out, size_t cap)
{
    return prb_settings_get(key, out, cap);
}

static void write_error(const struct prb_error *err, char *out, size_t cap)
{
    if (snprintf(out, cap, "%s%s%s", err->text, *err->remedy ? "; " : "", err->remedy) < 0)
        *out = '\0';
}

static int config_set(const char *key, const char *value, char *error, size_t cap)
{
    struct prb_error err;
    unsigned before = prb_parts_on();
    if (prb_settings_set(key, value, &err)) {
        prb_parts_follow(before, FOLLOW_MS);
        return 0;
    }
    write_error(&err, error, cap);
    return -1;
}

static int config_list(char *out, size_t cap)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    char value[PRB_SETTING_TEXT_MAX];
    for (size_t i = 0; i < prb_settings_count(); i++) {
        prb_settings_get(prb_settings_key(i), value, sizeof value);
        prb_buf_addf(&text, "%s=%s\n", prb_settings_key(i), value);
    }
    if (!prb_buf_ok(&text))
        return -1;
    snprintf(out, cap, "%s", text.data);
    return (int)text.len;
}

static const char *path(void) { return socket_path; }

static struct prb_probe_functions functions = {
    .version = PRB_PROBE_START_VERSION,
    .size = sizeof functions,
    .active = active,
    .detach = detach,
    .config_get = config_get,
    .config_set = config_set,
    .socket_path = path,
    .config_list = config_list,
};

/* With the lock, so that a detach does not close the folder meanwhile. */
static void log_start(const char *how, bool again)
{
    unsigned by, uid;
    bool injected = how && sscanf(how, "%u/%u", &by, &uid) == 2;
    pthread_mutex_lock(&prb_server.lock);
    if (prb_server.state == PRB_STATE_RUNS && injected)
        prb_log(prb_server.place.folder, "uid=%u by=%u inject %s", uid, by,
                again ? "again" : socket_path);
    else if (prb_server.state == PRB_STATE_RUNS)
        prb_log(prb_server.place.folder, "%s %s", how ? how : "start",
                again ? "again" : socket_path);
    pthread_mutex_unlock(&prb_server.lock);
}

__attribute__((visibility("default"))) int prb_probe_start(struct prb_probe_call *call)
{
    struct prb_error err = {0};
    if (call->version != PRB_PROBE_START_VERSION || call->size < sizeof *call)
        return -1; /* where its error is, only its version knows */
    pthread_mutex_lock(&starting);
    bool again = prb_server_runs_here();
    unsigned before = again ? prb_parts_on() : 0;
    static bool filled;
    if (!filled)
        prb_parts_functions(&functions);
    filled = true;
    bool ok =
        again ? !call->settings || prb_settings_set_lines(call->settings, &err) : begin(call, &err);
    if (ok)
        log_start(call->how, again);
    pthread_mutex_unlock(&starting);
    if (ok)
        /* A program that was started with it may not get far before it crashes: so it waits. */
        prb_parts_follow(before, FOLLOW_MS);
    if (ok)
        call->functions = &functions;
    else
        write_error(&err, call->error, sizeof call->error);
    return ok ? 0 : -1;
}
