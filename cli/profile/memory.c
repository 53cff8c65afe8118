/* profile --mode memory: see memory.h. */
#include "cli/profile/memory.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/print/out.h"
#include "cli/probe/probe.h"

#define SETTING "probing.memory.profile"
#define BEGIN_TRIES 500 /* for the hooks, which wait for the GIL */
#define BEGIN_MS 10
#define ROUND_MS 200 /* between two looks whether the target goes on */

PRB_DEFINE_AUTO_PTR(prb_allocations, struct prb_allocations, prb_allocations_free)
PRB_DEFINE_AUTO_PTR(prb_profile, struct prb_profile, prb_profile_free)

/* Until the seconds are over (0: never), the user ends it, or the target has ended. */
static void wait_for(pid_t pid, double seconds, int wake)
{
    double until = prb_clock_s() + seconds;
    struct pollfd fd = {.fd = wake, .events = POLLIN};
    while (prb_process_runs(pid)) {
        double left = seconds > 0 ? (until - prb_clock_s()) * 1000 : ROUND_MS;
        if (left <= 0 || poll(&fd, 1, left < ROUND_MS ? (int)left + 1 : ROUND_MS) > 0)
            return;
    }
}

static void pause_ms(int ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000L};
    nanosleep(&time, NULL);
}

/* Sampling is on, and sees all that it can. */
static struct prb_allocations *switch_on(struct prb_control *control, struct prb_target *target,
                                         struct prb_error *err)
{
    if (!prb_control_config_set(control, SETTING, "on", err))
        return NULL;
    for (int try = 0; try < BEGIN_TRIES; try++) {
        struct prb_allocations *taken = prb_allocations_take(target, err);
        if (taken && prb_allocations_go_on(taken))
            return taken;
        bool none_yet = !taken && err && err->code == PRB_NOT_FOUND;
        prb_allocations_free(taken);
        if (!taken && !none_yet)
            return NULL;
        pause_ms(BEGIN_MS);
    }
    prb_cli_fail(err, PRB_BUSY, "a thread that keeps the GIL does not let it",
                 "allocations could not be sampled: Python's allocators were not reached");
    return NULL;
}

static struct prb_profile *profile_of(struct prb_target *target,
                                      const struct prb_allocations *before, bool live,
                                      struct prb_error *err)
{
    PRB_AUTO(prb_allocations)
    struct prb_allocations *taken = prb_allocations_take(target, err);
    return taken ? prb_allocations_profile(target, taken, before,
                                           live ? PRB_PROFILE_LIVE : PRB_PROFILE_ALLOCATED, err)
                 : NULL;
}

/* Whether somebody has switched it on. */
static bool is_on(struct prb_control *control, bool *out, struct prb_error *err)
{
    PRB_AUTO_FREE char *value = NULL;
    if (!prb_control_config_get(control, SETTING, &value, err))
        return false;
    *out = strcmp(value, "on") == 0;
    return true;
}

static void switch_off(struct prb_control *control)
{
    struct prb_error ignored;
    if (!prb_control_config_set(control, SETTING, "off", &ignored))
        prb_out_note("sampling of allocations could not be switched off: the target has ended, or "
                     "its probe");
}

/* With sampling that is switched on for the time, and off again; or that is on, but not for long
 * enough to be seen. */
static struct prb_profile *profile_meanwhile(const struct prb_run *run, struct prb_target *target,
                                             double seconds, bool live, int wake,
                                             struct prb_error *err)
{
    pid_t pid = 0;
    bool was_on = false;
    struct prb_profile *profile = NULL;
    PRB_AUTO(prb_control) struct prb_control *control = prb_run_control(run, true, &pid, err);
    if (!control || !is_on(control, &was_on, err))
        return NULL;
    PRB_AUTO(prb_allocations) struct prb_allocations *begun = switch_on(control, target, err);
    if (begun) {
        if (!was_on || seconds > 0)
            wait_for(pid, seconds, wake);
        profile = profile_of(target, NULL, live, err);
    }
    if (!was_on)
        switch_off(control);
    return profile;
}

struct prb_profile *prb_run_memory_profile(const struct prb_run *run, double seconds, bool live,
                                           int wake, struct prb_error *err)
{
    PRB_AUTO(prb_target) struct prb_target *target = prb_run_open(run, err);
    if (!target)
        return NULL;
    PRB_AUTO(prb_allocations) struct prb_allocations *begun = prb_allocations_take(target, err);
    bool process = prb_target_info(target)->kind == PRB_TARGET_PROCESS;
    if (!begun && err && err->code != PRB_NOT_FOUND)
        return NULL;
    if (process && (!begun || !prb_allocations_go_on(begun)))
        return profile_meanwhile(run, target, seconds, live, wake, err);
    if (process && seconds > 0)
        wait_for(prb_target_info(target)->pid, seconds, wake);
    return begun ? profile_of(target, seconds > 0 ? begun : NULL, live, err) : NULL;
}

void prb_memory_report(const struct prb_profile *profile)
{
    char text[300], error[60] = "";
    uint64_t bytes = 0, blocks = 0;
    bool live = profile->mode == PRB_PROFILE_LIVE;
    for (size_t i = 0; i < profile->weight_count; i++) {
        bytes += profile->weights[i].ns;
        blocks += profile->weights[i].samples;
    }
    if (live)
        snprintf(error, sizeof error, " (one standard deviation %.1f)", profile->error / 1048576);
    snprintf(text, sizeof text,
             "%.1f MiB%s in %llu blocks %s in %.1f s, estimated from %llu samples",
             (double)bytes / 1048576, error, (unsigned long long)blocks,
             live ? "live, of those allocated" : "allocated", profile->seconds,
             (unsigned long long)profile->samples);
    prb_out_note(text);
}
