/* DELETE /api/v1/p/{}/eval/{}: KeyboardInterrupt for the evaluation of that name. */
#include "serve/work/evaluations.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16];
    return prb_serve_target_process(job, target, err) &&
           prb_evaluation_cancel(target, job->part[1], err) &&
           prb_answer_json(job->answer, json_pack("{s:b}", "interrupted", 1), err);
}

const struct prb_route prb_route_eval_end = {
    .methods = PRB_DELETE,
    .path = "/api/v1/p/{}/eval/{}",
    .summary = "interrupt an evaluation",
    .grant = PRB_MAY_EVAL,
    .formats = "json",
    .seconds = 10,
    .answer = answer,
};
