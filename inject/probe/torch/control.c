/*
 * Overhead kept below a bound: what the account says of the last steps decides how much is recorded.
 * Above the bound for a while, half as many steps have rows of modules, down to a floor; then only
 * modules in few calls have; then no call is looked at any more (step.c, choose).  Steps and phases stay.  Well below
 * it for longer, all that is taken back, one after the other.  Each change is a row of python.events.
 */
#include <limits.h>
#include <stdio.h>

#include "inject/probe/settings.h"
#include "inject/probe/torch/torch.h"

#define OVER_NS UINT64_C(10000000000)
#define UNDER_NS UINT64_C(60000000000)
#define SMOOTH 0.9
#define SHALLOW 3

static struct {
    bool on;
    double high, target; /* ratios */
    unsigned factor_max;
    double overhead;        /* smoothed */
    uint64_t over, under;   /* since when, ns; 0: it is not */
    unsigned factor, level; /* level 1: shallow, 2: no modules */
} control = {.factor = 1};

static void apply(void)
{
    char text[160];
    static const unsigned depths[] = {UINT_MAX, SHALLOW, 0};
    atomic_store(&prb_torch.shallow, depths[control.level]);
    snprintf(text, sizeof text, "{\"overhead\": %.5f, \"one_step_in\": %u, \"modules\": \"%s\"}",
             control.overhead, control.factor,
             control.level == 0   ? "all"
             : control.level == 1 ? "outer"
                                  : "none");
    prb_torch_record_moment("torch tracing adapts", text);
}

static bool less(void)
{
    if (control.factor < control.factor_max)
        control.factor *= 2;
    else if (control.level < 2)
        control.level++;
    else
        return false;
    return true;
}

static bool more(void)
{
    if (control.level)
        control.level--;
    else if (control.factor > 1)
        control.factor /= 2;
    else
        return false;
    return true;
}

/* Whether it has been so for long enough; then it begins anew. */
static bool lasts(uint64_t *since, bool so, uint64_t now, uint64_t ns)
{
    if (!so || !*since)
        *since = so ? now : 0;
    if (!so || now - *since < ns)
        return false;
    *since = now;
    return true;
}

unsigned prb_torch_control_step(double overhead, uint64_t now)
{
    control.overhead =
        control.overhead > 0 ? SMOOTH * control.overhead + (1 - SMOOTH) * overhead : overhead;
    bool over = lasts(&control.over, control.overhead > control.high, now, OVER_NS);
    bool under = lasts(&control.under, control.overhead < control.target, now, UNDER_NS);
    if (control.on && ((over && less()) || (under && more())))
        apply();
    return control.on ? control.factor : 1;
}

void prb_torch_control_begin(bool on)
{
    double floor_rate = prb_settings_number("probing.torch.rate_floor", 0.01);
    control.on = on;
    control.high = prb_settings_number("probing.torch.overhead_high_pct", 1) / 100;
    control.target = prb_settings_number("probing.torch.overhead_target_pct", 0.5) / 100;
    control.factor_max = 1;
    while (control.factor_max < 1u << 16 && control.factor_max * floor_rate < 1)
        control.factor_max *= 2;
    if (!on || !control.factor) {
        control.factor = 1;
        control.level = 0;
    }
    atomic_store(&prb_torch.shallow, control.level == 0   ? UINT_MAX
                                     : control.level == 1 ? SHALLOW
                                                          : 0);
}
