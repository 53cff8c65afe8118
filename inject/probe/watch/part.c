/*
 * Watched variables as a part of the probe: a job with the GIL finds names and puts hooks in, once
 * the settings say so and Python runs; another one takes them out.
 */
#include "inject/probe/part.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inject/probe/log.h"
#include "inject/probe/python/job.h"
#include "inject/probe/server/server.h"
#include "inject/probe/thread.h"
#include "inject/probe/torch/wanted.h"
#include "inject/probe/watch/watch.h"

#define GIL_MS 10000
#define LOOK_NS 20000000
#define BEGIN_NS UINT64_C(60000000000) /* that an interpreter may take to begin */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct wanted {
    char exprs[PRB_TORCH_EXPRS_MAX];
    char step[PRB_TORCH_ENDING_MAX]; /* a function whose return ends a step */
};
static struct wanted applied; /* what is watched now, or was tried */
static bool waiting;          /* a thread applies what is wanted */
static bool begun;            /* with the GIL */

static bool is_same(const struct wanted *a, const struct wanted *b)
{
    return strcmp(a->exprs, b->exprs) == 0 && strcmp(a->step, b->step) == 0;
}

static bool wanted(struct wanted *out)
{
    struct prb_torch_spec spec;
    prb_torch_wanted(&spec);
    memcpy(out->exprs, spec.exprs, sizeof spec.exprs);
    prb_torch_ending_function(out->step);
    if (!spec.enabled)
        out->exprs[0] = out->step[0] = '\0';
    return out->exprs[0] || out->step[0];
}

static void say(const char *what, const char *text)
{
    pthread_mutex_lock(&prb_server.lock);
    if (prb_server.state == PRB_STATE_RUNS)
        prb_log(prb_server.place.folder, "watch: %s%s", what, text);
    pthread_mutex_unlock(&prb_server.lock);
}

/* ---- with the GIL ---- */

static void take_out_all(const struct prb_py_api *py)
{
    struct prb_watch_list *before = prb_watch_set(NULL);
    prb_watch_evaluator_end();
    prb_watch_monitoring_end(py);
    prb_watch_rows_end();
    if (before)
        prb_watch_list_drop(before);
    free(before);
    begun = false;
}

static bool put_in(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    struct wanted what;
    (void)job;
    if (!wanted(&what)) {
        if (begun)
            take_out_all(py);
        return true;
    }
    PRB_AUTO_FREE struct prb_watch_list *list = calloc(1, sizeof *list);
    if (!list)
        return prb_nomem(err);
    if (!prb_watch_facts_find(py, err) || !prb_watch_rows_begin(err))
        return false;
    if (!prb_watch_list_make(py, what.exprs, what.step, list, err)) {
        prb_watch_list_drop(list);
        return false;
    }
    struct prb_watch_list *before = prb_watch_set(PRB_STEAL(list));
    if (before)
        prb_watch_list_drop(before);
    free(before);
    begun = true;
    struct prb_error why = {0};
    if (prb_watch_monitoring_begin(py, &why) ||
        (why.code == PRB_NOT_FOUND && prb_watch_evaluator_begin(py, &why)))
        say(what.exprs, what.step);
    else
        say("returns of functions are not seen: ", why.text);
    return true;
}

/* ---- who applies what is wanted ---- */

static bool is_applied(void)
{
    struct wanted what;
    wanted(&what);
    pthread_mutex_lock(&lock);
    bool same = is_same(&what, &applied);
    pthread_mutex_unlock(&lock);
    return same;
}

static void apply(void)
{
    static const struct prb_python_work work = {.run = put_in, .always = true};
    const struct prb_python_request request = {.work = &work, .gil_ms = GIL_MS};
    struct prb_error err = {0};
    struct wanted what;
    wanted(&what);
    if (!prb_python_wait(&request, PRB_PYTHON_ITS_OWN, &err))
        say("not on: ", err.text);
    pthread_mutex_lock(&lock);
    applied = what;
    pthread_mutex_unlock(&lock);
}

static void *keep_up(void *nothing)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    uint64_t end = prb_clock_ns() + BEGIN_NS;
    (void)nothing;
    for (;;) {
        pthread_mutex_lock(&lock);
        struct wanted what;
        wanted(&what);
        bool over = is_same(&what, &applied) || prb_clock_ns() > end;
        waiting = !over;
        pthread_mutex_unlock(&lock);
        if (over)
            return NULL;
        /* Started with the program, it may be there before Python, and before the server. */
        if (prb_server_runs_here() && prb_py_api(NULL))
            apply();
        else
            nanosleep(&pause, NULL);
    }
}

static void configure(void)
{
    if (is_applied())
        return;
    pthread_mutex_lock(&lock);
    bool start = !waiting;
    waiting = true;
    pthread_mutex_unlock(&lock);
    if (start && !prb_thread_start("probing-watch", keep_up, NULL, NULL)) {
        pthread_mutex_lock(&lock);
        waiting = false;
        pthread_mutex_unlock(&lock);
    }
}

/* ---- the part ---- */

static void detach(const struct prb_py_api *py)
{
    if (begun)
        take_out_all(py);
    pthread_mutex_lock(&lock);
    applied = (struct wanted){0};
    pthread_mutex_unlock(&lock);
}

static void forked(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    waiting = begun = false;
    applied = (struct wanted){0};
    prb_watch_evaluator_forked();
    prb_watch_moments_forked();
}

const struct prb_probe_part prb_probe_part_watch = {
    .name = "watch",
    .configure = configure,
    .detach = detach,
    .closing = detach,
    .forked = forked,
};
