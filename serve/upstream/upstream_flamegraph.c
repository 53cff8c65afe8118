/* GET /apis/pprofextension/flamegraph: a flame graph of the next second, as a picture. */
#include "serve/upstream/flames.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    return prb_upstream_profile(job, "flamegraph", err);
}

const struct prb_route prb_route_upstream_flamegraph = {
    .methods = PRB_GET,
    .path = "/apis/pprofextension/flamegraph",
    .summary = "a flame graph of the next second",
    .grant = PRB_MAY_LOOK,
    .formats = "flamegraph",
    .parameters = "pid seconds",
    .slow = true,
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
