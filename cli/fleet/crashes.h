/* Crash dumps on the hosts of a job. */
#ifndef PRB_CLI_FLEET_CRASHES_H
#define PRB_CLI_FLEET_CRASHES_H

#include "cli/command.h"

struct prb_job_crashes {
    bool all;           /* a line for each dump, equal ones, too */
    const char *format; /* PRB_ROW_FORMATS; NULL: a table */
    const char *pull;   /* a folder: fetch one dump of each group into it; NULL: none */
};
/* Of the job that the user named, else of the only one ("@"). */
bool prb_job_crash_list(const struct prb_run *run, const struct prb_job_crashes *how,
                        struct prb_error *err);

#endif
