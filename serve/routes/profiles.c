/* GET /api/v1/profiles: those that were begun by POST. */
#include "serve/http/route.h"
#include "serve/live/runs.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char ids[PRB_RUNS_MAX][PRB_RUN_NAME];
    size_t count = prb_runs_list(job->serve->runs, ids);
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++) {
        struct prb_run *run = prb_run_hold(job->serve->runs, ids[i], NULL);
        if (!run) /* it has ended meanwhile, or nothing could be sampled */
            continue;
        json_array_append_new(rows, prb_run_facts(run));
        prb_run_release(run);
    }
    return prb_answer_json(job->answer, json_pack("{s:o}", "profiles", rows), err);
}

const struct prb_route prb_route_profiles = {
    .methods = PRB_GET,
    .path = "/api/v1/profiles",
    .summary = "profiles that are taken, or were",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .slow = true,
    .seconds = 10,
    .answer = answer,
};
