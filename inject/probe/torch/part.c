/*
 * Recording PyTorch as a part of the probe: on while the setting probing.torch.profiling is.  A job
 * with the GIL puts the hooks in, another takes them out.
 */
#include "inject/probe/part.h"

#include <stdio.h>
#include <string.h>

#include "inject/probe/log.h"
#include "inject/probe/python/job.h"
#include "inject/probe/server/server.h"
#include "inject/probe/thread.h"
#include "inject/probe/torch/frames.h"
#include "inject/probe/torch/torch.h"
#include "inject/probe/torch/wanted.h"

#define GIL_MS 10000
#define BEGIN_MS 60000u
#define LOOK_NS 20000000            /* until PyTorch is there */
#define REST_NS UINT64_C(500000000) /* between looks without its library, at first */
#define REST_MAX_NS UINT64_C(8000000000)

struct prb_torch prb_torch;
static atomic_bool waiting; /* a thread waits for PyTorch */
static atomic_bool again;   /* a job is under way that arms again */

static bool is_on(void)
{
    struct prb_torch_spec spec;
    prb_torch_wanted(&spec);
    return spec.enabled;
}

static void configure(void)
{
    struct prb_torch_spec spec;
    prb_torch_wanted(&spec);
    prb_torch_set_rate(spec.rate);
}

/* What holds for now, for who asks. */
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static char state[PRB_TORCH_STATE_MAX];

static void set_state(const char *text)
{
    pthread_mutex_lock(&state_lock);
    snprintf(state, sizeof state, "%s", text);
    pthread_mutex_unlock(&state_lock);
}

void prb_torch_state(char *out, size_t size)
{
    bool wanted = is_on();
    pthread_mutex_lock(&state_lock);
    if (state[0] ? wanted : !wanted)
        snprintf(out, size, "%s", state);
    else
        snprintf(out, size, "%s", wanted ? "waiting" : "ending");
    pthread_mutex_unlock(&state_lock);
}

static void say(const char *what, const struct prb_error *err)
{
    pthread_mutex_lock(&prb_server.lock);
    if (prb_server.state == PRB_STATE_RUNS)
        prb_log(prb_server.place.folder, "torch: %s%s%s", what, err ? ": " : "",
                err ? err->text : "");
    pthread_mutex_unlock(&prb_server.lock);
}

static void add(char missing[PRB_TORCH_STATE_MAX], const char *what, const struct prb_error *err)
{
    size_t len = strlen(missing);
    snprintf(missing + len, PRB_TORCH_STATE_MAX - len, "; %s: %s", what, err->text);
}

/* ---- with the GIL ---- */

static bool put_in(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    struct prb_error why;
    (void)job;
    if (!is_on() || (!atomic_load(&prb_torch.on) && !prb_torch_frames_find(py, err)))
        return is_on() ? false : true;
    bool begins = !atomic_load(&prb_torch.on);
    if (begins && !prb_torch_record_begin(err))
        return false;
    if (!prb_torch_slots_arm(py, err)) {
        prb_torch_slots_disarm(py);
        return false;
    }
    char missing[PRB_TORCH_STATE_MAX] = "on";
    if (!prb_torch_backward_arm(py, &why))
        add(missing, "backward is not followed", &why);
    if (!prb_torch_observer_arm(&why))
        add(missing, "optimizers, batches and labels are not followed", &why);
    if (!begins)
        return true;
    prb_torch_cost_measure();
    atomic_fetch_add(&prb_torch.arming, 1);
    prb_torch_steps_begin();
    atomic_store(&prb_torch.on, true);
    set_state(missing);
    say(missing, NULL);
    return true;
}

static void take_out_all(const struct prb_py_api *py)
{
    bool was = atomic_exchange(&prb_torch.on, false);
    prb_torch_observer_disarm();
    prb_torch_backward_disarm();
    prb_torch_slots_disarm(py);
    if (was)
        prb_torch_steps_end();
    prb_torch_record_end();
    set_state("");
}

static bool take_out(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    (void)job, (void)err;
    take_out_all(py);
    return true;
}

/* ---- jobs ---- */

static const struct prb_python_work in = {.run = put_in, .always = true};
static const struct prb_python_work out = {.run = take_out, .always = true};

/* No event says when a program has imported PyTorch. */
static void *await_torch(void *nothing)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    const struct prb_python_request request = {.work = &in, .gil_ms = GIL_MS};
    struct prb_error err = {0};
    (void)nothing;
    uint64_t next = 0, rest = REST_NS; /* it may come from elsewhere than the usual library */
    while (is_on() && prb_server_runs_here()) {
        uint64_t now = prb_clock_ns();
        if (prb_py_api(NULL) && (prb_torch_loaded() || now >= next)) {
            if (prb_python_wait(&request, BEGIN_MS, &err) || err.code != PRB_NOT_FOUND)
                break;
            next = now + rest;
            rest += rest < REST_MAX_NS ? rest : 0;
        }
        nanosleep(&pause, NULL);
    }
    if (!atomic_load(&prb_torch.on) && err.code && err.code != PRB_NOT_FOUND) {
        say("not on", &err);
        set_state(err.text);
    }
    atomic_store(&waiting, false);
    return NULL;
}

static void follow(bool on, uint32_t wait_ms)
{
    const struct prb_python_request request = {.work = on ? &in : &out, .gil_ms = GIL_MS};
    struct prb_error err = {0};
    if (!on) {
        if (prb_py_api(NULL))
            prb_python_wait(&request, wait_ms, NULL);
        return;
    }
    if (prb_py_api(NULL) && wait_ms && prb_python_wait(&request, wait_ms, &err))
        return;
    set_state("waiting");
    if (!atomic_exchange(&waiting, true) &&
        !prb_thread_start("probing-torch", await_torch, NULL, NULL))
        atomic_store(&waiting, false);
}

static void armed_again(void *context, const struct prb_python_result *result)
{
    (void)context, (void)result;
    atomic_store(&again, false);
}

static void not_armed_again(void *context, const struct prb_error *err)
{
    (void)context, (void)err;
    atomic_store(&again, false);
}

/* torch.fx and torch.export have CPython put its own function back into every class. */
void prb_torch_check(void)
{
    static const struct prb_python_sink sink = {.done = armed_again, .failed = not_armed_again};
    const struct prb_python_request request = {.work = &in, .gil_ms = GIL_MS};
    if (!atomic_load(&prb_torch.on) || prb_torch_slots_hold() || atomic_exchange(&again, true))
        return;
    struct prb_python_job *job = prb_python_start(&request, &sink, NULL);
    if (job)
        prb_python_release(job);
    else
        atomic_store(&again, false);
}

/* ---- the part ---- */

static void detach(const struct prb_py_api *py) { take_out_all(py); }

static void forked(void)
{
    atomic_store(&prb_torch.on, false);
    atomic_store(&waiting, false);
    atomic_store(&again, false);
    state_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    prb_torch_slots_forked();
    prb_torch_steps_forked();
    prb_torch_labels_forked();
    prb_torch_observer_forked();
    prb_torch_record_end();
}

extern const struct prb_request_kind prb_request_torch;
static const struct prb_request_kind *const requests[] = {&prb_request_torch, NULL};

const struct prb_probe_part prb_probe_part_torch = {
    .name = "torch",
    .requests = requests,
    .configure = configure,
    .is_on = is_on,
    .follow = follow,
    .detach = detach,
    .closing = detach,
    .forked = forked,
};
