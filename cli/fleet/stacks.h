/* Stacks of the ranks of a job. */
#ifndef PRB_CLI_FLEET_STACKS_H
#define PRB_CLI_FLEET_STACKS_H

#include "cli/command.h"
#include "fleet/merged.h"

struct prb_job_stacks {
    const struct prb_stack_options *options; /* native, locals, all_interpreters, secrets, repr */
    const char *thread;                      /* by name; NULL: all */
    bool by_function, json;
};
bool prb_job_backtrace(const struct prb_run *run, const struct prb_job_stacks *how,
                       struct prb_error *err);
/* Tasks of asyncio of all ranks, equal ones together. */
bool prb_job_tasks(const struct prb_run *run, bool json, struct prb_error *err);
/* A frame and its locals. */
void prb_out_merged_frame(FILE *out, const struct prb_merged_frame *frame, bool verbose);

#endif
