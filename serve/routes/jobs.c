/* GET /api/v1/jobs: the jobs of several ranks that are known. */
#include "serve/routes/job_roster.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    json_t *jobs = prb_serve_jobs(job->serve, NULL, err);
    return jobs && prb_answer_json(job->answer, json_pack("{s:o}", "jobs", jobs), err);
}

const struct prb_route prb_route_jobs = {
    .methods = PRB_GET,
    .path = "/api/v1/jobs",
    .summary = "jobs and their ranks, on this host or on the bus",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .slow = true,
    .seconds = 20,
    .answer = answer,
};
