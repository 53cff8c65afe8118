/* After recording of PyTorch was turned on: wait for it, and tell the probe what it cannot see from inside. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "inject/control.h"

#define END_S 5.0
#define WAITING_S 1.0 /* after which it is not imported */
/* For the program's own counter of steps: who waits for us, and the probe, which asks again. */
#define COUNTER_S 2.0
#define COUNTER_PROBE_S 30.0
#define PAUSE_NS 10000000

PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)

struct talk {
    struct prb_control *control;
    prb_note_fn *note;
    void *context;
    char state[1200];
};

static bool steps_ended(void *context, int64_t *out)
{
    struct talk *talk = context;
    return prb_control_torch(talk->control, NULL, talk->state, sizeof talk->state, out, NULL);
}

/* Until it is on, or known why not, or off. */
static bool wait_for(struct talk *talk, struct prb_error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (double began = prb_clock_s();; nanosleep(&pause, NULL)) {
        int64_t steps;
        if (!prb_control_torch(talk->control, NULL, talk->state, sizeof talk->state, &steps, err))
            return false;
        bool waiting = strcmp(talk->state, "waiting") == 0;
        if (!waiting && strcmp(talk->state, "ending") != 0)
            return true;
        if (prb_clock_s() - began > (waiting ? WAITING_S : END_S))
            return true;
    }
}

static void tell(struct talk *talk, struct prb_target *target, double seconds)
{
    struct prb_error err;
    char line[600], counter[200];
    int64_t offset, steps;
    PRB_AUTO_FREE char *plan = prb_torch_plan(target, &err);
    if (!plan ||
        !prb_control_torch(talk->control, plan, talk->state, sizeof talk->state, &steps, &err)) {
        snprintf(line, sizeof line, "modules have no names: %s", err.text);
        talk->note(talk->context, line);
        return;
    }
    if (!prb_torch_counter(target, steps_ended, talk, seconds, &offset, counter, sizeof counter,
                           &err))
        return; /* global_step is NULL; the probe asks again */
    snprintf(line, sizeof line, "offset %lld %s\n", (long long)offset, counter);
    (void)prb_control_torch(talk->control, line, talk->state, sizeof talk->state, &steps, NULL);
}

bool prb_torch_follow(struct prb_control *control, bool for_probe, prb_note_fn *note, void *context,
                      struct prb_error *err)
{
    struct talk talk = {.control = control, .note = note, .context = context};
    if (!wait_for(&talk, err))
        return false;
    if (!talk.state[0] || strcmp(talk.state, "ending") == 0)
        return true;
    if (strcmp(talk.state, "waiting") == 0) {
        note(context, "PyTorch is not imported yet: recording begins when it is");
        return true;
    }
    if (strncmp(talk.state, "on", 2) != 0) {
        prb_fail(err, PRB_UNSUPPORTED, "PyTorch cannot be recorded: %s", talk.state);
        return prb_error_remedy(
            err,
            "`query \"SELECT * FROM python.torch_phases(5)\"` samples the phases from outside");
    }
    PRB_AUTO(prb_target)
    struct prb_target *target = prb_target_open_pid(prb_control_pid(control), NULL);
    if (target)
        tell(&talk, target, for_probe ? COUNTER_PROBE_S : COUNTER_S);
    if (strncmp(talk.state, "on; ", 4) == 0)
        note(context, talk.state + 4);
    if (strstr(talk.state, "not followed"))
        note(context,
             "`query \"SELECT * FROM python.torch_phases(5)\"` samples the rest from outside");
    return true;
}
