/* probing dap: a debug adapter on standard input and output, as editors start one. */
#include "command.h"
#include "dap/dap.h"

static bool run_dap(const struct prb_run *run, struct prb_error *err)
{
    (void)run;
    return prb_dap_serve(STDIN_FILENO, STDOUT_FILENO, err);
}

const struct prb_command prb_command_dap = {
    .name = "dap",
    .aliases = "",
    .summary = "a debug adapter on standard input and output, for editors",
    .arguments = "",
    .target = PRB_USES_NO_TARGET,
    .description = "Speaks the Debug Adapter Protocol. What is debugged stands in the client's configuration: "
                   "processId, processName, core, snapshot, or a program to launch. When the client goes, the "
                   "target runs on as before.",
    .run = run_dap,
};
