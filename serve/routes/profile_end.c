/* DELETE /api/v1/profiles/{}: end it, and forget it. */
#include "serve/http/route.h"
#include "serve/live/runs.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    return prb_runs_end(job->serve->runs, job->part[0], err) &&
           prb_answer_json(job->answer, json_pack("{s:s,s:b}", "id", job->part[0], "deleted", 1),
                           err);
}

const struct prb_route prb_route_profile_end = {
    .methods = PRB_DELETE,
    .path = "/api/v1/profiles/{}",
    .summary = "end a profile, and forget it",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .slow = true,
    .seconds = 10,
    .answer = answer,
};
