/* POST /api/v1/p/{}/detach: the probe ends; the target runs on. */
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16];
    json_auto_t *body = prb_question_object(job, err);
    return body && prb_serve_target_process(job, target, err) &&
           prb_answer_by_control(job, (const char *const[]){"-p", target, "detach", NULL}, err);
}

const struct prb_route prb_route_detach = {
    .methods = PRB_POST,
    .path = "/api/v1/p/{}/detach",
    .summary = "end the probe",
    .grant = PRB_MAY_CONTROL,
    .formats = "json text",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
