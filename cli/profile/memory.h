/* `profile --mode memory`: a profile of allocations, which the target's probe samples. */
#ifndef PRB_CLI_PROFILE_MEMORY_H
#define PRB_CLI_PROFILE_MEMORY_H

#include "cli/command.h"

/*
 * Of what the target allocated: since it is sampled when it is and no seconds are given, at once;
 * else within so many seconds (0: until wake can be read, or the target ends), switched on for
 * these where it was off.  live: what lives, in place of what was allocated.
 */
struct prb_profile *prb_run_memory_profile(const struct prb_run *run, double seconds, bool live,
                                           int wake, struct prb_error *err) PRB_MUST_CHECK;
/* In one line: how much, and from how many samples. */
void prb_memory_report(const struct prb_profile *profile);

#endif
