/* POST /api/v1/jobs/{}/skills/{}: what a skill finds in the ranks; `probing -t @JOB skill run NAME`. */
#include <string.h>

#include "serve/routes/job_roster.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char how_long[40];
    json_auto_t *body = prb_question_object(job, err);
    if (!body)
        return false;
    double seconds = json_number_value(json_object_get(body, "seconds"));
    if (json_object_get(body, "seconds") && !(seconds >= 0.5 && seconds <= 60))
        return prb_fail(err, PRB_USAGE, "seconds must be from 0.5 to 60");
    snprintf(how_long, sizeof how_long, "--seconds=%.3f", seconds);
    const char *words[9] = {NULL, NULL, "skill"};
    size_t count = 3;
    if (seconds > 0)
        words[count++] = how_long;
    if (strcmp(job->format, "json") == 0)
        words[count++] = "--json";
    words[count++] = "--";
    words[count++] = "run";
    words[count++] = job->part[1];
    return prb_serve_job_answer(job, words, err);
}

const struct prb_route prb_route_job_skill_run = {
    .methods = PRB_POST,
    .path = "/api/v1/jobs/{}/skills/{}",
    .summary = "what a skill finds in the ranks; \"diagnose\": all; with the coverage",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .body = "seconds",
    .slow = true,
    .seconds = 120,
    .answer = answer,
};
