/* How findings of ranks become those of their job. */
#ifndef PRB_FLEET_SKILLS_FINDINGS_H
#define PRB_FLEET_SKILLS_FINDINGS_H

#include <jansson.h>

#include "fleet/skills.h"

/* What a rank (-1: the job as a whole) says: an object as prb_diagnosis_json has it, or {"note"}.  What has
 * another form is left out: its agent is of another release. */
bool prb_job_diagnosis_add(struct prb_job_diagnosis *diagnosis, const json_t *row, const char *job,
                           int rank, struct prb_error *err);
/* The worst first, else in the order in which they were found. */
void prb_job_diagnosis_sort(struct prb_job_diagnosis *diagnosis);

#endif
