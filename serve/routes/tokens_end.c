/* DELETE /api/v1/tokens: end all second tokens. */
#include "serve/doors/tokens.h"

#include "serve/http/route.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    return prb_answer_json(
        job->answer, json_pack("{s:i}", "ended", (int)prb_tokens_revoke(job->serve->tokens)), err);
}

const struct prb_route prb_route_tokens_end = {
    .methods = PRB_DELETE,
    .path = "/api/v1/tokens",
    .summary = "end all second tokens",
    .grant = PRB_MAY_CONTROL,
    .formats = "json",
    .seconds = 10,
    .answer = answer,
};
