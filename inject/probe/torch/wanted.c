#include "inject/probe/torch/wanted.h"

#include "inject/probe/settings.h"

#define PROFILING "probing.torch.profiling"
#define EXPRS "probing.torch.exprs"

void prb_torch_wanted(struct prb_torch_spec *out)
{
    char profiling[PRB_SETTING_TEXT_MAX] = "", exprs[PRB_SETTING_TEXT_MAX] = "";
    bool refused = prb_settings_refused(PROFILING) || prb_settings_refused(EXPRS);
    if (prb_settings_given(PROFILING)) /* else variables alone turn it on */
        prb_settings_get(PROFILING, profiling, sizeof profiling);
    prb_settings_get(EXPRS, exprs, sizeof exprs);
    /* Both were checked alone; more variables than fit in all is what is left to fail. */
    if (refused || !prb_torch_spec_both(profiling, exprs, out, NULL))
        out->enabled = false;
}
