/* GET /api/v1/jobs/{}/hang: does the job hang, who is to blame, who waits; `probing -t @JOB hang`. */
#include <string.h>

#include "serve/routes/job_roster.h"

#define EVERY_LEAST 0.05
#define EVERY_MOST 60.0

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char seconds[40];
    double every = 2;
    if (!prb_question_number(job->question, "between", EVERY_LEAST, EVERY_MOST, &every, err))
        return false;
    snprintf(seconds, sizeof seconds, "--every=%.3f", every);
    const char *words[6] = {NULL, NULL, "hang", seconds};
    if (strcmp(job->format, "json") == 0)
        words[4] = "--format=json";
    return prb_serve_job_answer(job, words, err);
}

const struct prb_route prb_route_job_hang = {
    .methods = PRB_GET,
    .path = "/api/v1/jobs/{}/hang",
    .summary = "whether the job hangs, which rank is to blame, who waits; by two looks",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .parameters = "between",
    .slow = true,
    .seconds = 90,
    .answer = answer,
};
