/* Skills on the ranks of a job. */
#ifndef PRB_CLI_FLEET_SKILLS_H
#define PRB_CLI_FLEET_SKILLS_H

#include "cli/command.h"

struct prb_job_skills {
    const char *name; /* of a skill; NULL: all that look at a running process, and comm */
    double seconds;   /* how long to look; 0: as they say */
    bool json;
};
/* What they find in each rank, like findings together; comm compares the ranks of all hosts. */
bool prb_job_skills(const struct prb_run *run, const struct prb_job_skills *how,
                    struct prb_error *err);

#endif
