/* GET /api/v1/jobs/{}/crashes: dumps of the job's ranks, on all its hosts; `probing -t @JOB crash list`. */
#include <string.h>

#include "serve/routes/job_roster.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *words[6] = {NULL, NULL, "crash", "list"};
    if (strcmp(job->format, "json") == 0)
        words[4] = "--format=json";
    return prb_serve_job_answer(job, words, err);
}

const struct prb_route prb_route_job_crashes = {
    .methods = PRB_GET,
    .path = "/api/v1/jobs/{}/crashes",
    .summary = "crash dumps of the job's ranks, equal ones of several ranks as one",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .slow = true,
    .seconds = 90,
    .answer = answer,
};
