/* GET /apis/pprofextension/flamegraph/folded/json: {"lines": ["main;train;step 12", …]}. */
#include "serve/upstream/flames.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    json_t *lines = prb_upstream_folded(job, err);
    return lines && prb_answer_json(job->answer, json_pack("{s:o}", "lines", lines), err);
}

const struct prb_route prb_route_upstream_folded = {
    .methods = PRB_GET,
    .path = "/apis/pprofextension/flamegraph/folded/json",
    .summary = "stacks of the next second, a line each",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "pid seconds",
    .slow = true,
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
