/* Which processes `--ranks` means, for the commands that sample several. */
#ifndef PRB_CLI_RANKS_H
#define PRB_CLI_RANKS_H

#include "probing.h"

/*
 * Sample all ranks of the job that process pid is a rank or the launcher of; pid 0: every rank of
 * every job.  Errors: NOT_FOUND (no process has a RANK), those of prb_profiler_add when none could
 * be added.
 */
bool prb_run_ranks(struct prb_profiler *profiler, pid_t pid, struct prb_error *err);

/* Options of profile and top. */
#define PRB_OPTION_SUBPROCESSES                                                                    \
    {'s', "subprocesses", NULL, "the Python processes that it starts, too, now and later", NULL}
#define PRB_OPTION_RANKS                                                                           \
    {0, "ranks", NULL,                                                                             \
     "all ranks of the target's job on this machine, also those that its launcher starts later; "  \
     "without a target, of every job",                                                             \
     NULL}

#endif
