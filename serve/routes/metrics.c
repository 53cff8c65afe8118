/* GET /metrics: what the server's own looks say of each process, in Prometheus' text format. */
#include "format/metrics.h"
#include "serve/http/route.h"
#include "serve/live/watch.h"

static void add_process(void *context, const struct prb_measured *now)
{
    prb_metrics_add(context, now);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    PRB_AUTO(prb_metrics) struct prb_metrics metrics = {0};
    (void)err;
    prb_watch_each(job->serve->watch, add_process, &metrics);
    prb_metrics_text(&metrics, &job->answer->body);
    job->answer->type = "text/plain; version=0.0.4; charset=utf-8";
    return true;
}

const struct prb_route prb_route_metrics = {
    .methods = PRB_GET,
    .path = "/metrics",
    .summary =
        "memory, CPU time, threads, step and unchanged seconds of each process, for Prometheus",
    .grant = PRB_MAY_LOOK,
    .formats = "text",
    .seconds = 10,
    .answer = answer,
};
