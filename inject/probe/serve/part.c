/*
 * probing.listen and probing.background: a server of its own, in the background.  A child after
 * fork(2) has none: the server of its parent has what descends from it.
 */
#include "inject/probe/part.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "inject/probe/log.h"
#include "inject/probe/serve/serve.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"
#include "inject/probe/start.h"
#include "inject/probe/thread.h"

#define BEGIN_S 60 /* s: for a thread that gets no processor */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of address */
static char address[PRB_SETTING_TEXT_MAX]; /* where it was started last; "": nowhere */
static _Atomic bool inherited;             /* by a parent */

static void tell(const char *where, const char *url, const struct prb_error *err)
{
    pthread_mutex_lock(&prb_server.lock);
    if (prb_server.state == PRB_STATE_RUNS && url)
        prb_log(prb_server.place.folder, "serving on %.*s", (int)strcspn(url, "#"), url);
    else if (prb_server.state == PRB_STATE_RUNS)
        prb_log(prb_server.place.folder, "listen=%s: %s%s%s", where, err->text,
                *err->remedy ? "; " : "", err->remedy);
    pthread_mutex_unlock(&prb_server.lock);
}

static bool start(const char *where, const char *allow, char url[PRB_SERVE_URL_MAX],
                  struct prb_error *err)
{
    bool ok = prb_serve_start(where, allow, url, err);
    tell(where, ok ? url : NULL, err);
    return ok;
}

static void *run(void *context)
{
    PRB_AUTO_FREE char *where = context;
    char url[PRB_SERVE_URL_MAX];
    struct prb_error err = {0};
    if (!prb_server_wait_begun(BEGIN_S)) /* it has the log, where what fails is told */
        return NULL;
    if (start(where, NULL, url, &err))
        prb_serve_wipe(url, sizeof url);
    return NULL;
}

/* What the settings ask for; "": nothing. */
static void wanted(char out[PRB_SETTING_TEXT_MAX])
{
    if (prb_settings_get("probing.listen", out, PRB_SETTING_TEXT_MAX) <= 0)
        snprintf(out, PRB_SETTING_TEXT_MAX, "%s",
                 prb_settings_number("probing.background", 0) > 0 ? "RANDOM" : "");
}

/* Whether it is to be started there, which is noted. */
static bool is_new(const char *where)
{
    pthread_mutex_lock(&lock);
    bool is = *where && strcmp(address, where) != 0;
    snprintf(address, sizeof address, "%s", where);
    pthread_mutex_unlock(&lock);
    return is;
}

static void configure(void)
{
    char where[PRB_SETTING_TEXT_MAX];
    wanted(where);
    if (atomic_load(&inherited) || !is_new(where))
        return;
    char *kept = strdup(where);
    if (kept && !prb_thread_start("probing-serve", run, kept, NULL))
        free(kept);
}

static void forked(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (*address)
        atomic_store(&inherited, true);
    prb_serve_start_forked();
}

/* For code in the target: at once, with the answer. */
static int serve(const char *where, const char *allow, char *out, size_t cap)
{
    char url[PRB_SERVE_URL_MAX];
    struct prb_error err = {0};
    bool ok = prb_serve_address_check(where, &err);
    if (ok) {
        is_new(where); /* the setting then changes nothing */
        ok = start(where, allow, url, &err);
    }
    if (ok)
        prb_settings_set("probing.listen", where, &err);
    snprintf(out, cap, "%s%s%s", ok ? url : err.text, !ok && *err.remedy ? "; " : "",
             ok ? "" : err.remedy);
    prb_serve_wipe(url, sizeof url);
    return ok ? 0 : -1;
}

static void functions(struct prb_probe_functions *out) { out->serve = serve; }

const struct prb_probe_part prb_probe_part_serve = {
    .name = "serve",
    .configure = configure,
    .forked = forked,
    .functions = functions,
};
