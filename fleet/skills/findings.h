/* How findings of ranks become those of their job. */
#ifndef PRB_FLEET_SKILLS_FINDINGS_H
#define PRB_FLEET_SKILLS_FINDINGS_H

#include <jansson.h>

#include "fleet/skills.h"

/* What a rank (-1: the job as a whole) says: an object as prb_diagnosis_json has it, or {"note"}.  What has
 * another form is left out: its agent is of another release. */
bool prb_job_diagnosis_add(struct prb_job_diagnosis *diagnosis, const json_t *row, const char *job,
                           int rank, struct prb_error *err);
/* One that several ranks have (NULL: of the job as a whole); where and next may be NULL. */
bool prb_job_diagnosis_say(struct prb_job_diagnosis *diagnosis, const struct prb_finding *finding,
                           const struct prb_rank_set *ranks, struct prb_error *err);
/* Whether the job hangs, by the verdict on all its ranks (fleet/hang.h): who is to blame, who waits. */
bool prb_job_diagnosis_judge(struct prb_job_diagnosis *diagnosis, struct prb_fleet *fleet,
                             double seconds, struct prb_coverage *coverage, struct prb_error *err);
/* The worst first, else in the order in which they were found. */
void prb_job_diagnosis_sort(struct prb_job_diagnosis *diagnosis);

#endif
