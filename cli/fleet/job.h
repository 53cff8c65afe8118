/* What commands share whose target is a job: "@JOB:RANKS". */
#ifndef PRB_CLI_JOB_H
#define PRB_CLI_JOB_H

#include "cli/command.h"
#include "fleet/fleet.h"

PRB_DEFINE_AUTO_PTR(prb_fleet, struct prb_fleet, prb_fleet_close)

/* --timeout, seconds; 0: not given.  False: it is no such number. */
bool prb_run_job_timeout(const struct prb_run *run, double *out, struct prb_error *err);
/* Open the job that the user named (prb_run_job), with --bus and --timeout. */
struct prb_fleet *prb_run_open_job(const struct prb_run *run, struct prb_error *err) PRB_MUST_CHECK;
/* The same, with a budget for each question where --timeout gives none (0: the kind's). */
struct prb_fleet *prb_run_open_job_for(const struct prb_run *run, double budget,
                                       struct prb_error *err) PRB_MUST_CHECK;
/* The same, and go_on is asked some times a second while an answer is waited for: false ends it. */
struct prb_fleet *prb_run_open_job_while(const struct prb_run *run, double budget,
                                         bool (*go_on)(void *context), void *context,
                                         struct prb_error *err) PRB_MUST_CHECK;
/* Of an address; also one that has ended. */
struct prb_fleet *prb_run_open_job_over(const struct prb_run *run, const char *address,
                                        struct prb_error *err) PRB_MUST_CHECK;
/* Only what of it runs on this host, whatever bus is configured: for commands that need a process. */
struct prb_fleet *prb_run_open_job_here(const struct prb_run *run,
                                        struct prb_error *err) PRB_MUST_CHECK;
/* The tables of all its ranks, each row with its rank.  Close db before fleet. */
struct prb_db *prb_run_job_db(const struct prb_run *run, struct prb_fleet **fleet_out,
                              struct prb_coverage *coverage, struct prb_error *err) PRB_MUST_CHECK;
/* After an answer, before anything of it is printed: false, PARTIAL, with --strict when not all
 * ranks answered; else then the exit status is that of PARTIAL. */
bool prb_run_covered(const struct prb_run *run, const struct prb_coverage *coverage,
                     struct prb_error *err);
/* The line on standard error, behind what is not JSON. */
void prb_out_coverage(const struct prb_coverage *coverage);
/* "rank 3", "ranks 0-2 (3 of 4)", without the end of the line. */
void prb_out_ranks(FILE *out, const struct prb_rank_set *ranks, unsigned of);

#endif
