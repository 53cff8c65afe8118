/* What is done in all ranks of a job, and what each said: equal answers together. */
#ifndef PRB_CLI_FLEET_ACT_H
#define PRB_CLI_FLEET_ACT_H

#include <jansson.h>

#include "cli/command.h"

struct prb_job_act {
    const char *kind; /* of the question; its result is struct prb_eval_answers */
    const char
        *question; /* "Run this": on a terminal it is asked for several ranks; NULL: it is not */
    json_t *args;  /* an object, which is released; NULL: no args */
    double budget; /* s; 0: the kind's */
    bool json;
};
bool prb_job_act(const struct prb_run *run, struct prb_job_act *act, struct prb_error *err);

#endif
