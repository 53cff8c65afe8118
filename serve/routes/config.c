/* GET /api/v1/p/{}/config: the settings of the probe; its defaults where there is none. */
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16];
    bool text = job->format[0] == 't';
    const char *const words[] = {"-p", target, "config", text ? NULL : "--json", NULL};
    return prb_serve_target_process(job, target, err) &&
           prb_answer_by_command(job, words,
                                 text ? "text/plain; charset=utf-8" : "application/json", err);
}

const struct prb_route prb_route_config = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/config",
    .summary = "the settings of the probe",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .seconds = 10,
    .answer = answer,
};
