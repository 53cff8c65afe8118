/* GET /api/v1/p/{}/tasks: asyncio tasks and what they wait for. */
#include <string.h>

#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    if (strcmp(job->format, "text") == 0)
        return prb_answer_by_command(
            job, (const char *const[]){"-t", prb_serve_target_name(held), "tasks", NULL},
            "text/plain; charset=utf-8", err);
    struct prb_async_tasks *tasks = prb_async_tasks_take(prb_serve_target_open(held), err);
    PRB_AUTO_FREE char *json = tasks ? prb_async_tasks_json(tasks, err) : NULL;
    prb_async_tasks_free(tasks);
    job->answer->type = "application/json";
    if (json)
        prb_buf_adds(&job->answer->body, json);
    return json != NULL;
}

const struct prb_route prb_route_tasks = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/tasks",
    .summary = "asyncio tasks of a target",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .parameters = "every for",
    .seconds = 10,
    .answer = answer,
};
