/* DELETE /api/v1/p/{}/debug: the debug server that POST started ends, and the process goes on. */
#include "serve/work/debuggers.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16];
    return prb_serve_target_process(job, target, err) &&
           prb_debugger_end((pid_t)strtol(target, NULL, 10), err) &&
           prb_answer_json(job->answer, json_pack("{s:b}", "ended", 1), err);
}

const struct prb_route prb_route_debug_end = {
    .methods = PRB_DELETE,
    .path = "/api/v1/p/{}/debug",
    .summary = "end the debug server",
    .grant = PRB_MAY_EVAL,
    .formats = "json",
    .slow = true,
    .seconds = 10,
    .answer = answer,
};
