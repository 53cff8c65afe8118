/* Several processes at once: what --ranks and --subprocesses mean for commands that read. */
#ifndef PRB_CLI_MANY_H
#define PRB_CLI_MANY_H

#include "cli/command.h"

#define PRB_OPTION_READ_SUBPROCESSES                                                               \
    {'s', "subprocesses", NULL, "the Python processes that it started, too", NULL}
#define PRB_OPTION_READ_RANKS                                                                      \
    {0, "ranks", NULL,                                                                             \
     "all ranks of the target's job on this machine; without a target, of every job", NULL}

/* One of several, open. */
struct prb_one {
    pid_t pid;
    int rank; /* -1: none */
    struct prb_target *target;
};

struct prb_many {
    struct prb_one *items; /* by rank, then by pid */
    size_t count;
};

/*
 * Open the processes that the target and the options mean.  One that cannot be opened is left out
 * with a note.  Errors: NOT_FOUND (there is none), those of prb_target_open_pid when none could be
 * opened.
 */
struct prb_many *prb_many_open(const struct prb_run *run, bool ranks, bool subprocesses,
                               struct prb_error *err) PRB_MUST_CHECK;
void prb_many_free(struct prb_many *many);
PRB_DEFINE_AUTO_PTR(prb_many, struct prb_many, prb_many_free)
/* The tables of all of them, which must outlive it (prb_db_open_processes). */
struct prb_db *prb_many_db(const struct prb_many *many, struct prb_error *err) PRB_MUST_CHECK;
/* The note that it is left out, and why. */
void prb_many_left_out(const struct prb_one *one, const struct prb_error *why);

#endif
