/* PUT /api/v1/p/{}/config/{} {"value": "…"}: change a setting of the probe. */
#include <string.h>

#include "inject/control.h"
#include "serve/doors/access.h"
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16];
    PRB_AUTO(prb_buf) struct prb_buf word = {0};
    json_auto_t *body = prb_question_object(job, err);
    if (!body || !prb_serve_target_process(job, target, err))
        return false;
    if (strchr(job->part[1], '='))
        return prb_fail(err, PRB_NOT_FOUND, "there is no setting %.100s", job->part[1]);
    if (prb_config_is_program(job->part[1]) &&
        !prb_access_may(job->serve, job->question, PRB_MAY_EVAL, err))
        return false;
    prb_buf_addf(&word, "%s=%s", job->part[1], json_string_value(json_object_get(body, "value")));
    if (!prb_buf_ok(&word))
        return prb_nomem(err);
    snprintf(job->did, sizeof job->did, "%s", word.data);
    return prb_answer_by_control(
        job, (const char *const[]){"-p", target, "config", "--", word.data, NULL}, err);
}

const struct prb_route prb_route_setting_put = {
    .methods = PRB_PUT,
    .path = "/api/v1/p/{}/config/{}",
    .summary = "change a setting of the probe",
    .grant = PRB_MAY_CONTROL,
    .formats = "json text",
    .body = "value!",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
