/* Rows of a statement over all ranks of a job (-t @JOB), with what did not answer. */
#ifndef PRB_CLI_FLEET_ROWS_H
#define PRB_CLI_FLEET_ROWS_H

#include "cli/command.h"
#include "format/format.h"

struct prb_job_rows {
    const char *sql;
    bool plan;   /* what is fetched, instead of the rows */
    bool reveal; /* secrets */
    bool json;   /* one object: rows and coverage; else the coverage is a line on standard error */
    struct prb_row_writer *writer; /* to standard output */
};

bool prb_run_job_rows(const struct prb_run *run, const struct prb_job_rows *rows,
                      struct prb_error *err);

#endif
