/* GET /ready: the server can be asked. */
#include "serve/http/route.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    return prb_answer_json(job->answer, json_pack("{s:s}", "status", "ready"), err);
}

const struct prb_route prb_route_upstream_ready = {
    .methods = PRB_GET,
    .path = "/ready",
    .summary = "that the server can be asked",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
