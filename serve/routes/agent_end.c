/* DELETE /api/v1/agent: this server is the host's agent no more. */
#include "serve/work/agent.h"

#include "serve/http/route.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    if (!job->question->local)
        return prb_fail(err, PRB_PERMISSION, "the agent is ended through the Unix socket");
    bool ended = job->serve->agent && prb_serve_agent_end(job->serve->agent);
    return prb_answer_json(job->answer, json_pack("{s:b}", "ended", ended), err);
}

const struct prb_route prb_route_agent_end = {
    .methods = PRB_DELETE,
    .path = "/api/v1/agent",
    .summary = "this server is the host's agent no more; through the Unix socket",
    .grant = PRB_MAY_ALL,
    .formats = "json",
    .seconds = 20,
    .answer = answer,
};
