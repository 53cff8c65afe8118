/* probing version: one line. */
#include <stdio.h>

#include "cli/command.h"

static bool run_version(const struct prb_run *run, struct prb_error *err)
{
    (void)run, (void)err;
    printf("probing %s\n", prb_version());
    return true;
}

const struct prb_command prb_command_version = {
    .name = "version",
    .aliases = "",
    .summary = "print the version",
    .arguments = "",
    .target = PRB_USES_NO_TARGET,
    .description = "Prints the version; --version does the same.",
    .run = run_version,
};
