/*
 * What skills find in the ranks of a job: each rank is looked at on its host, what several have is
 * said once, and a skill that compares ranks reads the tables of all.
 */
#ifndef PRB_FLEET_SKILLS_H
#define PRB_FLEET_SKILLS_H

#include "fleet/fleet.h"

/* What is found in some ranks, in the words of the lowest. */
struct prb_job_finding {
    enum prb_severity severity;
    char *skill, *finding;
    char *where, *next;        /* or NULL; next names ranks of the job, no process ids */
    struct prb_rank_set ranks; /* none: it is of the job as a whole */
    bool differ;               /* but for their numbers its ranks say the same */
    char *key;                 /* by which findings are the same */
    size_t order;              /* in which they were found */
};

struct prb_job_diagnosis {
    struct prb_job_finding *findings; /* the worst first */
    size_t count, cap;
    size_t left_out; /* findings that were too many */
    char note[300];  /* what could not be looked at, in the lowest rank, or "" */
    /* Of the first question that not all ranks answered, else of the first. */
    struct prb_coverage coverage;
};
/* Begins as {0}. */
PRB_API void prb_job_diagnosis_deinit(struct prb_job_diagnosis *diagnosis);
PRB_DEFINE_AUTO(prb_job_diagnosis, struct prb_job_diagnosis, prb_job_diagnosis_deinit)

struct prb_job_diagnose_options {
    const char *name; /* of a skill of ours; NULL: all that look at running processes */
    double seconds;   /* how long to look; 0: as they say */
};
/* s that ranks are to have for each question; of prb_fleet_open. */
PRB_API double prb_job_diagnose_budget(const struct prb_job_diagnose_options *options);
/* Errors: USAGE (no skill of a job), NOT_FOUND (no such skill), those of prb_fleet_ask. */
PRB_API bool prb_job_diagnose(struct prb_fleet *fleet,
                              const struct prb_job_diagnose_options *options,
                              struct prb_job_diagnosis *out, struct prb_error *err) PRB_MUST_CHECK;
/* {"findings": [{"severity", "finding", "where", "next", "skill", "ranks", "count", "alike"}], "tables": [],
 * "notes": […], "coverage"} */
PRB_API void prb_job_diagnosis_json(const struct prb_job_diagnosis *diagnosis, FILE *out);

#endif
