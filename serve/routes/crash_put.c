/* PUT /api/v1/p/{}/crash {"on": true}: whether a dump is written when it crashes. */
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16], hold[40];
    json_auto_t *body = prb_question_object(job, err);
    if (!body || !prb_serve_target_process(job, target, err))
        return false;
    bool on = json_is_true(json_object_get(body, "on"));
    const json_t *seconds = json_object_get(body, "hold");
    snprintf(hold, sizeof hold, "--hold=%g", json_number_value(seconds));
    snprintf(job->did, sizeof job->did, "%s", on ? "on" : "off");
    const char *const arm[] = {"-p", target, "inject", "-c", seconds ? hold : NULL, NULL};
    const char *const disarm[] = {"-p", target, "config", "probing.crash=off", NULL};
    return prb_answer_by_control(job, on ? arm : disarm, err);
}

const struct prb_route prb_route_crash_put = {
    .methods = PRB_PUT,
    .path = "/api/v1/p/{}/crash",
    .summary = "whether a dump is written when it crashes",
    .grant = PRB_MAY_CONTROL,
    .formats = "json text",
    .body = "on! hold",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
