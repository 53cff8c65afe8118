/* POST /api/v1/tokens {"allow": "eval"}: a second token, for the server's own user alone. */
#include "format/json.h"
#include "serve/doors/access.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char token[PRB_NET_TOKEN_SIZE];
    unsigned grants = 0;
    json_auto_t *body = prb_question_object(job, err);
    if (!body)
        return false;
    if (!job->question->local)
        return prb_fail(err, PRB_PERMISSION, "second tokens are given through the Unix socket");
    const char *allow = json_string_value(json_object_get(body, "allow"));
    if (!prb_grants_parse(allow, &grants, err) || !prb_access_carries(job->serve, grants, err) ||
        !prb_tokens_add(job->serve->tokens, grants, token, err))
        return false;
    bool ok = prb_answer_json(job->answer,
                              json_pack("{s:s,s:s,s:f}", "token", token, "allow",
                                        prb_grants_text(grants), "seconds", PRB_TOKEN_SECONDS),
                              err);
    explicit_bzero(token, sizeof token);
    return ok;
}

const struct prb_route prb_route_tokens = {
    .methods = PRB_POST,
    .path = "/api/v1/tokens",
    .summary = "a second token with more grants, for eight hours; through the Unix socket",
    .grant = PRB_MAY_ALL,
    .formats = "json",
    .body = "allow!",
    .seconds = 10,
    .answer = answer,
};
