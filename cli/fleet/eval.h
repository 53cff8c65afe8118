/* Code that runs in all ranks of a job. */
#ifndef PRB_CLI_FLEET_EVAL_H
#define PRB_CLI_FLEET_EVAL_H

#include "cli/command.h"

struct prb_job_code {
    const char *code;
    const char *name_space;      /* as struct prb_eval_options */
    double gil_timeout, timeout; /* s; 0: the default, the budget */
    bool json;
};
bool prb_job_eval(const struct prb_run *run, const struct prb_job_code *code,
                  struct prb_error *err);

#endif
