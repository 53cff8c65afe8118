/* The view "steps" of the ranks of a job, on all hosts: what they record, by SQL over their rows. */
#ifndef PRB_CLI_JOB_STEPS_H
#define PRB_CLI_JOB_STEPS_H

#include "cli/top/kept.h"
#include "fleet/fleet.h"

/* A row of each rank that is asked, by rank; out is filled anew.  db: of the fleet (fleet/sql.h). */
bool prb_job_steps_read(const struct prb_fleet_info *info, struct prb_db *db,
                        struct prb_kept_steps *out, struct prb_error *err) PRB_MUST_CHECK;

#endif
