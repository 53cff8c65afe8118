/* POST /api/v1/targets {"pid": 4711}: a server that ends with processes lives as long as this one, too. */
#include "serve/doors/life.h"
#include "serve/http/route.h"
#include "serve/live/watch.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    json_auto_t *body = prb_question_object(job, err);
    if (!body)
        return false;
    if (!job->question->local)
        return prb_fail(err, PRB_PERMISSION, "processes are added through the Unix socket");
    if (!job->serve->life)
        return prb_fail(err, PRB_UNSUPPORTED, "this server ends with no process");
    pid_t pid = (pid_t)json_integer_value(json_object_get(body, "pid"));
    if (!prb_life_add(job->serve->life, pid, err))
        return false;
    prb_watch_again(job->serve->watch);
    return prb_answer_json(job->answer, json_pack("{s:i}", "added", (int)pid), err);
}

const struct prb_route prb_route_targets_add = {
    .methods = PRB_POST,
    .path = "/api/v1/targets",
    .summary =
        "a server that ends with processes lives as long as this one, too; through the Unix socket",
    .grant = PRB_MAY_CONTROL,
    .formats = "json",
    .body = "pid!",
    .seconds = 10,
    .answer = answer,
};
