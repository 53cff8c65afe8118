/* POST /api/v1/agent {"agent": {"allow": "eval"}}: this server is the host's agent on the bus from now on. */
#include "serve/work/agent.h"

#include "serve/http/route.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    struct prb_cluster_attached attached;
    json_auto_t *body = prb_question_object(job, err);
    if (!body)
        return false;
    if (!job->question->local)
        return prb_fail(err, PRB_PERMISSION, "a server becomes the agent through the Unix socket");
    if (!job->serve->agent)
        return prb_fail(err, PRB_UNSUPPORTED, "a server for some processes is no host's agent");
    return prb_serve_agent_attach(job->serve->agent, json_object_get(body, "agent"), &attached,
                                  err) &&
           prb_answer_json(job->answer,
                           json_pack("{s:i,s:b}", "pid", attached.pid, "already", attached.already),
                           err);
}

const struct prb_route prb_route_agent = {
    .methods = PRB_POST,
    .path = "/api/v1/agent",
    .summary = "this server is the host's agent on the bus, too; through the Unix socket",
    .grant = PRB_MAY_ALL,
    .formats = "json",
    .body = "agent!",
    .slow = true,
    .seconds = 60,
    .answer = answer,
};
