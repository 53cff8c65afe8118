/*
 * Sampled allocations as a part of the probe.  While it is on, one thread puts the hooks in, looks
 * four times a second at what has changed, and takes them out at the end.
 */
#include "inject/probe/part.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "inject/probe/memory/memory.h"
#include "inject/probe/python/job.h"
#include "inject/probe/settings.h"
#include "inject/probe/thread.h"

#define GIL_MS 5000u
#define END_MS 2000u /* that the probe's end waits for the thread */
#define ROUND_MS 250u
#define BEGIN_MS 20u /* between two looks whether the interpreter has started */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted;  /* it is to be on */
    bool running; /* there is a thread */
    bool done;    /* what is wanted is so, as far as can be: nothing is, at first */
    bool python;  /* Python's allocators are wrapped; with the GIL, too */
    bool tried;   /* … or cannot be */
    struct prb_error why;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = true};
PRB_CLOCK_COND(state.changed)

static bool is_on(void) { return prb_settings_number("probing.memory.profile", 0) != 0; }

static struct prb_memory_limits limits(void)
{
    return (struct prb_memory_limits){
        .period = prb_settings_number("probing.memory.period", 512 << 10),
        .samples = prb_settings_number("probing.memory.samples", 200),
    };
}

/* With the lock: wait for a change, at most so long.  False: the time is over. */
static bool wait_ms(uint32_t ms)
{
    struct timespec until = prb_clock_in(ms * 1e-3);
    return pthread_cond_timedwait(&state.changed, &state.lock, &until) != ETIMEDOUT;
}

/* ---- jobs, with the GIL ---- */

static bool put_in(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    (void)job;
    pthread_mutex_lock(&state.lock);
    bool wanted = state.wanted;
    pthread_mutex_unlock(&state.lock);
    if (!wanted)
        return true;
    bool ok = prb_memory_frames_find(py, err) && prb_memory_python_put(py, err);
    pthread_mutex_lock(&state.lock);
    state.python = ok;
    state.tried = true;
    if (!ok)
        state.why = *err;
    pthread_mutex_unlock(&state.lock);
    return ok;
}

static bool take_out(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    (void)job, (void)err;
    pthread_mutex_lock(&state.lock);
    bool out = state.python && !state.wanted;
    if (out)
        state.python = false;
    pthread_mutex_unlock(&state.lock);
    if (out)
        prb_memory_python_take_out(py);
    return true;
}

static void run_job(bool on)
{
    static const struct prb_python_work in = {.run = put_in, .urgent = true};
    static const struct prb_python_work out = {.run = take_out, .urgent = true, .always = true};
    const struct prb_python_request request = {.work = on ? &in : &out, .gil_ms = GIL_MS};
    struct prb_error err = {0};
    if (!prb_python_wait(&request, PRB_PYTHON_ITS_OWN, &err) && on) {
        pthread_mutex_lock(&state.lock);
        if (!state.tried)
            state.why = err;
        pthread_mutex_unlock(&state.lock);
    }
}

/* ---- the thread ---- */

/* What is not in yet. */
static void put_missing(void)
{
    pthread_mutex_lock(&state.lock);
    bool again = !state.tried;
    pthread_mutex_unlock(&state.lock);
    if (again && prb_py_api(NULL))
        run_job(true);
    pthread_mutex_lock(&state.lock);
    bool python = state.python;
    struct prb_error why = state.why;
    pthread_mutex_unlock(&state.lock);
    prb_memory_record_hooked(python, why.text, prb_memory_native_put());
}

static void take_all_out(void)
{
    prb_memory_record_end();
    run_job(false);
    prb_memory_native_take_out();
}

/* One time on, until it is off.  With the lock. */
static void stay_on(void)
{
    const struct prb_memory_limits now = limits();
    state.tried = false;
    state.why = (struct prb_error){0};
    pthread_mutex_unlock(&state.lock);
    struct prb_error err = {0};
    bool ok = prb_memory_record_begin(&now, &err);
    if (ok)
        put_missing();
    pthread_mutex_lock(&state.lock);
    while (state.wanted) {
        if (state.tried || !ok) {
            state.done = true;
            pthread_cond_broadcast(&state.changed);
        }
        wait_ms(state.tried || !ok ? ROUND_MS : BEGIN_MS);
        if (!state.wanted || !ok)
            continue;
        pthread_mutex_unlock(&state.lock);
        prb_memory_record_adapt();
        put_missing();
        pthread_mutex_lock(&state.lock);
    }
    pthread_mutex_unlock(&state.lock);
    if (ok)
        take_all_out();
    pthread_mutex_lock(&state.lock);
}

static void *run(void *nothing)
{
    (void)nothing;
    pthread_mutex_lock(&state.lock);
    while (state.wanted)
        stay_on();
    state.running = false;
    state.done = true;
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
    return NULL;
}

/* ---- the part ---- */

/* With the lock. */
static void want(bool on)
{
    if (state.wanted == on)
        return;
    state.wanted = on;
    state.done = !on && !state.running;
    if (on && !state.running)
        state.running = prb_thread_start("probing-memory", run, NULL, NULL);
    pthread_cond_broadcast(&state.changed);
}

static void await_done(uint32_t ms)
{
    uint64_t until = prb_clock_ns() + (uint64_t)ms * 1000000u;
    for (uint64_t now; !state.done && (now = prb_clock_ns()) < until;)
        wait_ms((uint32_t)((until - now) / 1000000u) + 1);
}

static void configure(void)
{
    const struct prb_memory_limits now = limits();
    prb_memory_record_limit(&now);
}

static void follow(bool on, uint32_t ms)
{
    pthread_mutex_lock(&state.lock);
    want(on);
    if (ms)
        await_done(ms);
    pthread_mutex_unlock(&state.lock);
}

/* With the GIL. */
static void detach(const struct prb_py_api *py)
{
    pthread_mutex_lock(&state.lock);
    want(false);
    bool out = state.python;
    state.python = false;
    pthread_mutex_unlock(&state.lock);
    if (out)
        prb_memory_python_take_out(py);
}

static void end(void)
{
    pthread_mutex_lock(&state.lock);
    want(false);
    await_done(END_MS);
    bool ended = !state.running;
    pthread_mutex_unlock(&state.lock);
    if (ended)
        prb_memory_record_free();
}

static void forked(void)
{
    pthread_mutex_init(&state.lock, NULL);
    prb_clock_cond_init(&state.changed);
    state.wanted = state.running = state.python = state.tried = false;
    state.done = true;
    prb_memory_record_forked();
    prb_memory_native_forked();
}

const struct prb_probe_part prb_probe_part_memory = {
    .name = "memory",
    .configure = configure,
    .is_on = is_on,
    .follow = follow,
    .detach = detach,
    .closing = detach,
    .end = end,
    .forked = forked,
};
