/*
 * Recording PyTorch as a part of the probe: on while the setting probing.torch.profiling is.  A job
 * with the GIL puts the hooks in, another takes them out.
 */
#include "inject/probe/part.h"
#include "inject/probe/cuda/cuda.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "inject/probe/log.h"
#include "inject/probe/python/job.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"
#include "inject/probe/torch/ending.h"
#include "inject/probe/torch/frames.h"
#include "inject/probe/torch/torch.h"
#include "inject/probe/torch/wanted.h"

#define GIL_MS 10000

struct prb_torch prb_torch;

bool prb_torch_wanted_now(void)
{
    struct prb_torch_spec spec;
    prb_torch_wanted(&spec);
    return spec.enabled;
}

static void configure(void)
{
    struct prb_torch_spec spec;
    prb_torch_wanted(&spec);
    prb_torch_ending_configure();
    prb_torch_set_rate(spec.rate);
    prb_torch_set_shadow((unsigned)spec.shadow_normal, (unsigned)spec.shadow_steps);
    bool may = spec.adaptive == PRB_TORCH_ON ||
               (spec.adaptive == PRB_TORCH_AUTO && spec.rate < 0 &&
                prb_settings_number("probing.torch.adaptive_rate", 1) > 0);
    prb_torch_control_begin(may);
    atomic_store(&prb_torch.budget, (unsigned)prb_settings_number("probing.torch.rows", 2000));
    bool some = spec.layer_rate > 0 && spec.layer_rate < 1;
    atomic_store(&prb_torch.depth, spec.depth > 0 ? (unsigned)spec.depth : UINT_MAX);
    atomic_store(&prb_torch.layers, some ? (unsigned)(spec.layer_rate * UINT_MAX) : UINT_MAX);
    atomic_store(&prb_torch.layer_weight, some ? (unsigned)(1 / spec.layer_rate + 0.5) : 1);
    atomic_store(&prb_torch.backwards, spec.backward);
    atomic_store(&prb_torch.spans, spec.trace_spans);
    atomic_store(&prb_torch.random, spec.random);
    atomic_store(&prb_torch.device, spec.gpu != PRB_TORCH_OFF);
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

/* Unless the keeper, whom an "off" just before this one had not woken yet, was quicker: what is on
 * is said after it is. */
static void set_waiting(void)
{
    pthread_mutex_lock(&state_lock);
    if (!atomic_load(&prb_torch.on))
        snprintf(state, sizeof state, "waiting");
    pthread_mutex_unlock(&state_lock);
}

void prb_torch_state(char *out, size_t size)
{
    bool wanted = prb_torch_wanted_now();
    char missing[PRB_TORCH_ENDING_MAX + 120];
    prb_torch_ending_missing(missing, sizeof missing);
    pthread_mutex_lock(&state_lock);
    if (state[0] ? wanted : !wanted)
        snprintf(out, size, "%s%s%s", state, state[0] && missing[0] ? "; " : "",
                 state[0] ? missing : "");
    else
        snprintf(out, size, "%s", wanted ? "waiting" : "ending");
    pthread_mutex_unlock(&state_lock);
    /* Whoever waits for it has it looked after again, should its thread have left. */
    if (strcmp(out, "waiting") == 0)
        prb_torch_keep();
}

static void say(const char *what, const struct prb_error *err)
{
    pthread_mutex_lock(&prb_server.lock);
    if (prb_server.state == PRB_STATE_RUNS)
        prb_log(prb_server.place.folder, "torch: %s%s%s", what, err ? ": " : "",
                err ? err->text : "");
    pthread_mutex_unlock(&prb_server.lock);
}

void prb_torch_refused(const struct prb_error *err)
{
    say("not on", err);
    set_state(err->text);
}

static void add(char missing[PRB_TORCH_STATE_MAX], const char *what, const struct prb_error *err)
{
    size_t len = strlen(missing);
    snprintf(missing + len, PRB_TORCH_STATE_MAX - len, "; %s: %s", what, err->text);
}

/* ---- with the GIL ---- */

static unsigned times_out; /* that all was taken out */

static void take_out_all(const struct prb_py_api *py)
{
    times_out++;
    bool was = atomic_exchange(&prb_torch.on, false);
    prb_torch_observer_disarm();
    prb_torch_optimizers_disarm(py);
    prb_torch_backward_disarm();
    prb_torch_wait_disarm();
    if (was)
        prb_torch_steps_end();
    prb_torch_record_end();
    prb_torch_slots_disarm(py); /* the last: another job may arm meanwhile */
}

/* Both are worth having alone: what is missing is said. */
static void arm_others(const struct prb_py_api *py, char missing[PRB_TORCH_STATE_MAX])
{
    struct prb_error why, neither;
    if (!prb_torch_backward_arm(py, &why))
        add(missing, "backward is not followed", &why);
    prb_torch_wait_arm(py);
    if (prb_torch_observer_arm(py, &why))
        prb_torch_optimizers_disarm(py);
    else if (prb_torch_optimizers_arm(py, &neither))
        add(missing, "optimizers are followed by their hooks, batches and labels not", &why);
    else
        add(missing, "optimizers, batches and labels are not followed", &why);
}

/* The rings, and what our own code costs: the program's threads have the GIL meanwhile. */
static bool prepare(const struct prb_py_api *py, struct prb_error *err)
{
    void *saved = py->PyEval_SaveThread();
    bool ready = prb_torch_record_begin(err);
    if (ready && prb_cuda_look())
        prb_torch_record_devices();
    if (ready)
        prb_torch_cost_measure();
    if (ready && prb_cuda_allocator_look())
        prb_torch_cost_measure_memory();
    py->PyEval_RestoreThread(saved);
    prb_py_gil_acquired(py);
    return ready;
}

static void begin(void)
{
    prb_torch_labels_begin();
    atomic_fetch_add(&prb_torch.arming, 1);
    prb_torch_steps_begin();
    atomic_store(&prb_torch.on, true);
}

static bool put_in(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    char missing[PRB_TORCH_STATE_MAX] = "on";
    unsigned times = times_out;
    if (!prb_torch_wanted_now())
        return true; /* it was turned off meanwhile */
    if (!prb_torch_frames_find(py, err) || !prb_torch_slots_arm(py, err) ||
        (times == times_out && !atomic_load(&prb_torch.on) && !prepare(py, err))) {
        take_out_all(py);
        return false;
    }
    if (times != times_out) { /* another job did, while this one did not have the GIL */
        if (!prb_torch_wanted_now())
            take_out_all(py); /* it did not see the rings of this one */
        return put_in(job, py, err);
    }
    bool begins = !atomic_load(&prb_torch.on);
    arm_others(py, missing);
    if (begins)
        begin();
    set_state(missing);
    if (begins)
        say(missing, NULL);
    return true;
}

static bool take_out(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err)
{
    (void)job, (void)err;
    if (prb_torch_wanted_now())
        return true; /* it was turned on meanwhile */
    take_out_all(py);
    if (!atomic_load(&prb_torch.on)) /* another job has put them in meanwhile */
        set_state("");
    return true;
}

/* ---- jobs ---- */

const struct prb_python_work prb_torch_put_in = {.run = put_in, .always = true, .urgent = true};
static const struct prb_python_work out = {.run = take_out, .always = true};

static void follow(bool on, uint32_t wait_ms)
{
    const struct prb_python_request request = {.work = on ? &prb_torch_put_in : &out,
                                               .gil_ms = GIL_MS};
    if (on)
        set_waiting();
    if (prb_py_api(NULL) && (!on || wait_ms))
        prb_python_wait(&request, wait_ms, NULL);
    prb_torch_keep();
}

/* ---- the part ---- */

static void end(void) { prb_torch_keep(); } /* its thread leaves */

static void detach(const struct prb_py_api *py)
{
    take_out_all(py);
    set_state("");
}

static void forked(void)
{
    atomic_store(&prb_torch.on, false);
    state_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    prb_torch_keep_forked();
    prb_torch_slots_forked();
    prb_torch_steps_forked();
    prb_cuda_forked();
    prb_cuda_allocator_forked();
    prb_torch_ending_forked();
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
    .is_on = prb_torch_wanted_now,
    .follow = follow,
    .detach = detach,
    .closing = detach,
    .end = end,
    .forked = forked,
};
