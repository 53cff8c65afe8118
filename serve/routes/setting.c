/* GET /api/v1/p/{}/config/{}: one setting of the probe. */
#include <string.h>

#include "format/json.h"
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16];
    const char *const words[] = {"-p", target, "config", "--", job->part[1], NULL};
    if (strchr(job->part[1], '='))
        return prb_fail(err, PRB_NOT_FOUND, "there is no setting %.100s", job->part[1]);
    if (!prb_serve_target_process(job, target, err) ||
        !prb_answer_by_command(job, words, "text/plain; charset=utf-8", err))
        return false;
    if (job->format[0] == 't')
        return true;
    PRB_AUTO(prb_buf) struct prb_buf line = job->answer->body;
    job->answer->body = (struct prb_buf){0};
    if (line.len)
        line.data[line.len - 1] = '\0';
    return prb_answer_json(job->answer,
                           json_pack("{s:o,s:o}", "key", prb_json_text(job->part[1]), "value",
                                     prb_json_text(line.len ? line.data : "")),
                           err);
}

const struct prb_route prb_route_setting = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/config/{}",
    .summary = "one setting of the probe",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .seconds = 10,
    .answer = answer,
};
