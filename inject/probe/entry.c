/*
 * prb_probe_start: the one door into libprobe.so, and the functions that Python code in the target
 * gets by it. Starting twice, from two threads or after a detach is all the same call.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "inject/probe/crash/crash.h"
#include "inject/probe/log.h"
#include "inject/probe/own.h"
#include "inject/probe/python/python.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"
#include "inject/probe/start.h"
#include "inject/probe/tables/tables.h"

#define ENVIRONMENT_MAX (1 << 20)
#define CRASH_WAIT_MS 1000
#define END_WAIT 3 /* s, for a detach under way */

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static pid_t configured; /* the process whose environment the settings are from */
static char socket_path[320];

/* In a child of fork(2): no thread of the probe is here, whoever held a lock is not, either. */
static void forked(void)
{
    prb_server_reset();
    prb_python_forked();
    prb_tables_forked();
    prb_crash_forked();
    starting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    socket_path[0] = '\0';
}

static bool runs_here(void)
{
    return prb_server.owner == getpid() && prb_server.state == PRB_STATE_RUNS;
}

static void settings_changed(void)
{
    prb_tables_configure();
    prb_crash_configure();
}

/* What makes no sense there is noted, and costs nothing else: it may be meant for somebody else.
 * Where the environment is not to be trusted it sets nothing: a setting names a program that is
 * run.
 */
static void configure(const struct prb_place *place, bool preloaded)
{
    PRB_AUTO_FREE char *text = malloc(ENVIRONMENT_MAX);
    struct prb_error err;
    long len = -1;
    if (text && !prb_environment_is_shut(preloaded))
        len = prb_place_self("environ", text, ENVIRONMENT_MAX);
    prb_settings_reset();
    for (char *at = text; len > 0 && at < text + len; at += strlen(at) + 1)
        if (!prb_settings_set_variable(at, &err))
            prb_log(place->folder, "ignored in the environment: %s", err.text);
    prb_settings_on_change(settings_changed);
    configured = getpid();
}

/* Settings that are taken and do nothing yet. */
static void tell_later(int folder)
{
    static const struct {
        const char *key, *what;
    } later[] = {
        {"probing.pprof", "profiling"},
        {"probing.listen", "serving on an address"},
        {"probing.background", "serving in the background"},
        {"probing.torch.profiling", "recording PyTorch modules"},
        {"probing.torch.exprs", "watching variables"},
    };
    char value[PRB_SETTING_TEXT_MAX];
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (prb_settings_given(later[i].key) &&
            prb_settings_get(later[i].key, value, sizeof value) > 0)
            prb_log(folder, "%s=%.100s is kept: %s comes with a later release", later[i].key, value,
                    later[i].what);
}

static bool begin(const struct prb_probe_call *call, struct prb_error *err)
{
    struct prb_place place;
    if (!prb_own_register(forked))
        return prb_fail(err, PRB_NOMEM, "the target is out of memory");
    if (prb_server.owner && prb_server.owner != getpid())
        forked(); /* a child made without fork(2)'s handlers */
    if (prb_server.state == PRB_STATE_ENDS && !prb_server_wait(END_WAIT))
        return prb_fail(err, PRB_BUSY, "the probe is being detached");
    if (!prb_place_make(&place, err))
        return false;
    if (configured != getpid())
        configure(&place, call->how && strcmp(call->how, PRB_HOW_PRELOAD) == 0);
    bool set = !call->settings || prb_settings_set_lines(call->settings, err);
    if (set) {
        tell_later(place.folder);
        prb_crash_configure();
    }
    if (!set || !prb_server_start(&place, err)) {
        prb_own_close(place.folder);
        return false;
    }
    snprintf(socket_path, sizeof socket_path, "%s/%s", place.path, place.name);
    return true;
}

static int active(void) { return runs_here(); }

static int detach(void)
{
    if (!runs_here())
        return 0;
    prb_server_stop();
    return prb_server_wait(END_WAIT) ? 0 : -1;
}

static int config_get(const char *key, char *out, size_t cap)
{
    return prb_settings_get(key, out, cap);
}

static void tell(const struct prb_error *err, char *out, size_t cap)
{
    if (snprintf(out, cap, "%s%s%s", err->text, *err->remedy ? "; " : "", err->remedy) < 0)
        *out = '\0';
}

/* The Python side of the crash handler; nobody here has the GIL.  A program that was started with
 * it may not get far before it crashes, so it is waited for. */
static void follow_crash(bool was_on)
{
    bool on = prb_crash_is_on();
    if (on && !was_on)
        prb_crash_stack();
    if (on != was_on)
        prb_crash_python(on, CRASH_WAIT_MS);
}

static int config_set(const char *key, const char *value, char *error, size_t cap)
{
    struct prb_error err;
    bool was_on = prb_crash_is_on();
    if (prb_settings_set(key, value, &err)) {
        follow_crash(was_on);
        return 0;
    }
    tell(&err, error, cap);
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

/* Who was detached records nothing, until the probe starts again. */
static void *table(const char *name, const char *columns, char *error, size_t cap)
{
    if (runs_here())
        return prb_tables_open(name, columns, error, cap);
    snprintf(error, cap, "no probe runs in this process");
    return NULL;
}

static const char *path(void) { return socket_path; }

static const struct prb_probe_functions functions = {
    .version = PRB_PROBE_START_VERSION,
    .size = sizeof functions,
    .active = active,
    .detach = detach,
    .config_get = config_get,
    .config_set = config_set,
    .socket_path = path,
    .table = table,
    .row = prb_tables_row,
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
    bool again = runs_here(), was_on = again && prb_crash_is_on();
    bool ok =
        again ? !call->settings || prb_settings_set_lines(call->settings, &err) : begin(call, &err);
    if (ok)
        log_start(call->how, again);
    pthread_mutex_unlock(&starting);
    if (ok)
        follow_crash(was_on);
    if (ok)
        call->functions = &functions;
    else
        tell(&err, call->error, sizeof call->error);
    return ok ? 0 : -1;
}
