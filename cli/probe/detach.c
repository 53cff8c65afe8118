/* probing detach: the probe ends; the target runs on without it. */
#include "cli/fleet/act.h"
#include "cli/print/out.h"
#include "cli/probe/probe.h"

static bool run_detach(const struct prb_run *run, struct prb_error *err)
{
    pid_t pid = 0;
    struct prb_job_act act = {.kind = "detach", .question = "End the probe"};
    if (prb_run_job(run))
        return prb_job_act(run, &act, err);
    PRB_AUTO(prb_control) struct prb_control *control = prb_run_control(run, false, &pid, err);
    if (!control || !prb_control_detach(control, err))
        return false;
    printf("the probe of process %d ended\n", (int)pid);
    return true;
}

const struct prb_command prb_command_detach = {
    .name = "detach",
    .aliases = "",
    .summary = "end the probe in the target",
    .arguments = "",
    .target = PRB_USES_TARGET,
    .description =
        "Ends the probe: its threads, its socket and its hooks go, running evaluations are "
        "interrupted first. What remains is the code of the library, mapped and idle, and the rows "
        "that were recorded, until they are too old. `probing inject` arms the same text again. "
        "With -t @JOB it ends the probes of all ranks, where agents run with `attach --allow "
        "control`.",
    .examples = "probing 12345 detach\nprobing -t @llama detach\n",
    .run = run_detach,
};
