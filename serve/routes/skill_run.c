/* POST /api/v1/p/{}/skills/{}: run a skill, or with "diagnose" all of ours. */
#include <limits.h>
#include <string.h>

#include "serve/live/diagnose.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char spec[PATH_MAX];
    json_auto_t *body = prb_question_object(job, err);
    if (!body)
        return false;
    struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    snprintf(spec, sizeof spec, "%s", prb_serve_target_name(held));
    prb_serve_target_release(held);
    double seconds = json_number_value(json_object_get(body, "seconds"));
    if (json_object_get(body, "seconds") && !(seconds >= 0.5 && seconds <= 60))
        return prb_fail(err, PRB_USAGE, "seconds must be from 0.5 to 60");
    const struct prb_serve_diagnosis wanted = {.serve = job->serve,
                                               .spec = spec,
                                               .name = job->part[1],
                                               .seconds = seconds,
                                               .goes_on = prb_serve_job_goes_on,
                                               .context = job};
    PRB_AUTO_FREE char *json = prb_serve_diagnose(&wanted, err);
    if (!json)
        return false;
    job->answer->type = "application/json";
    prb_buf_adds(&job->answer->body, json);
    return prb_buf_ok(&job->answer->body) || prb_nomem(err);
}

const struct prb_route prb_route_skill_run = {
    .methods = PRB_POST,
    .path = "/api/v1/p/{}/skills/{}",
    .summary = "what a skill finds; \"diagnose\": all that come with Probing",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .body = "seconds",
    .slow = true,
    .seconds = 120,
    .answer = answer,
};
