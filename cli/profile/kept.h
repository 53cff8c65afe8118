/* profile of what the collector sampled while probing.pprof was on (python.stack_samples). */
#ifndef PRB_CLI_PROFILE_KEPT_H
#define PRB_CLI_PROFILE_KEPT_H

#include "cli/command.h"

/* Errors: NOT_FOUND where the target's stacks are not sampled now, nor is it a job that has ended and
 * had them sampled; those of opening it. */
struct prb_profile *prb_run_kept_profile(const struct prb_run *run, enum prb_profile_mode mode,
                                         struct prb_error *err);
/* What is in it. */
void prb_kept_report(const struct prb_profile *profile);

#endif
