/* GET /api/v1/p/{}/tables: what can be asked in SQL. */
#include <string.h>

#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    bool text = strcmp(job->format, "text") == 0;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    const char *const words[] = {"-t", prb_serve_target_name(held),  "tables",
                                 "-f", text ? "table" : job->format, NULL};
    return prb_answer_by_command(job, words,
                                 text ? "text/plain; charset=utf-8" : "application/json", err);
}

const struct prb_route prb_route_tables = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/tables",
    .summary = "the tables of a target",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .seconds = 10,
    .answer = answer,
};
