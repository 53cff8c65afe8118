/* Stacks into the target's own log. */
#ifndef PRB_CLI_DUMP_H
#define PRB_CLI_DUMP_H

#include "cli/command.h"

/* Write the stacks of the run's target to that process's standard error, and say so on ours. */
bool prb_dump_to_target(const struct prb_run *run, struct prb_error *err);

#endif
