/* All ranks of a job sampled together, round by round: what profile and top have of it. */
#ifndef PRB_CLI_FLEET_SAMPLING_H
#define PRB_CLI_FLEET_SAMPLING_H

#include "cli/command.h"
#include "fleet/fleet.h"
#include "fleet/profile.h"

struct prb_job_sampling {
    const struct prb_run *run;
    const struct prb_profiler_options *how; /* mode, rate, native, async, subprocesses, states */
    double longest;                         /* s of one round */
    /* Asked some ten times a second; false: no more.  May be NULL. */
    bool (*go_on)(void *context);
    void *context;
    /* set by the functions below */
    struct prb_fleet *fleet;
    struct prb_fleet_profile sum;
    struct prb_coverage coverage; /* of the first round that not all answered, else of the last */
    char missing[200];            /* of the last round: who did not answer; "": all did */
    double begun;                 /* s, by prb_clock_s: of the first round */
    bool ended;                   /* go_on said so */
    bool silent;                  /* no rank has answered the last round */
};
/* Whatever the result. */
void prb_job_sampling_deinit(struct prb_job_sampling *sampling);
PRB_DEFINE_AUTO(prb_job_sampling, struct prb_job_sampling, prb_job_sampling_deinit)

bool prb_job_sampling_begin(struct prb_job_sampling *sampling, struct prb_error *err);
/*
 * One round of at most so many seconds (0: the longest), added to sum.  Where go_on ended it, it
 * adds nothing.  Errors: those of prb_fleet_ask; when no rank has answered so far, the first rank's.
 */
bool prb_job_sample(struct prb_job_sampling *sampling, double seconds, struct prb_error *err);

/* The sum as one JSON object: "frames" and "nodes" once each, "threads" with the rank of each, "weights" as
 * [thread, node, samples], "coverage". */
bool prb_job_profile_json(const struct prb_job_sampling *sampling, FILE *out,
                          struct prb_error *err);
/* Say which ranks are elsewhere than the others: functions of which one has far more or less than
 * most. */
void prb_job_note_uneven(const struct prb_profile *profile);

#endif
