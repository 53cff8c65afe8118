/* GET /api/v1/jobs/{}: one job and its ranks. */
#include "serve/routes/job_roster.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    json_auto_t *jobs = prb_serve_jobs(job->serve, job->part[0], err);
    if (!jobs)
        return false;
    if (json_array_size(jobs) == 0)
        return prb_fail(err, PRB_NOT_FOUND, "there is no job @%.120s", job->part[0]) ||
               prb_error_remedy(err, "GET /api/v1/jobs has those that there are");
    return prb_answer_json(job->answer, json_incref(json_array_get(jobs, 0)), err);
}

const struct prb_route prb_route_job = {
    .methods = PRB_GET,
    .path = "/api/v1/jobs/{}",
    .summary = "one job and its ranks",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .slow = true,
    .seconds = 20,
    .answer = answer,
};
