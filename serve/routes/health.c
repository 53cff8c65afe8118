/* GET /health: the server answers. */
#include "serve/http/route.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    return prb_answer_json(job->answer, json_pack("{s:s}", "status", "ok"), err);
}

const struct prb_route prb_route_health = {
    .methods = PRB_GET,
    .path = "/health",
    .summary = "that the server answers",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .seconds = 10,
    .answer = answer,
};
