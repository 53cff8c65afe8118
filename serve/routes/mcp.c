/* POST /mcp: tools for agents (mcp/mcp.h); a message in, a message out. */
#include "serve/mcp/mcp.h"

#include "serve/http/route.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const struct prb_question *question = job->question;
    if (question->foreign) {
        job->answer->status = 403;
        return prb_answer_json(job->answer,
                               json_pack("{s:s,s:n,s:{s:i,s:s}}", "jsonrpc", "2.0", "id", "error",
                                         "code", -32600, "message", "not from this Origin"),
                               err);
    }
    const char *token = question->token_name;
    char who[sizeof question->who + sizeof question->token_name + 8];
    snprintf(who, sizeof who, "%s%s%s", question->who, *token ? " with " : "", token);
    const struct prb_mcp mcp = {.serve = job->serve,
                                .log = job->serve->log,
                                .who = who,
                                .targets = job->targets,
                                .program = job->serve->program,
                                .eval = question->grants & PRB_MAY_EVAL,
                                .goes_on = prb_serve_job_goes_on,
                                .context = job,
                                .until = job->until,
                                .version = question->mcp[0],
                                .method = question->mcp[1],
                                .name = question->mcp[2]};
    int status;
    json_t *told = prb_mcp_answer(&mcp, question->body.data ? question->body.data : "",
                                  question->body.len, &status);
    job->answer->status = status;
    job->answer->type = "application/json";
    return !told || prb_answer_json(job->answer, told, err);
}

const struct prb_route prb_route_mcp = {
    .methods = PRB_POST,
    .path = "/mcp",
    .summary = "tools for agents, by the Model Context Protocol",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .slow = true,
    .seconds = 120,
    .answer = answer,
};
