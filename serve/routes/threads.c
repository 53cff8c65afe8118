/* GET /api/v1/p/{}/threads: its threads, without their stacks. */
#include "serve/routes/rows.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    return prb_answer_rows(job, "SELECT * FROM python.threads", err);
}

const struct prb_route prb_route_threads = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/threads",
    .summary = "the threads of a target, without their stacks",
    .grant = PRB_MAY_LOOK,
    .formats = "json jsonl csv text",
    .slow = true,
    .seconds = 10,
    .answer = answer,
};
