/* GET /api/v1/p/{}/tables/{}: the columns of a table. */
#include <string.h>

#include "serve/routes/rows.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *name = job->part[1];
    char sql[300];
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")])
        return prb_fail(err, PRB_NOT_FOUND, "\"%.60s\" is not the name of a table", name);
    snprintf(sql, sizeof sql, "DESCRIBE %s", name);
    if (prb_answer_rows(job, sql, err))
        return true;
    if (err->code == PRB_QUERY)
        err->code = PRB_NOT_FOUND;
    return false;
}

const struct prb_route prb_route_table = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/tables/{}",
    .summary = "the columns of a table, with units and meanings",
    .grant = PRB_MAY_LOOK,
    .formats = "json jsonl csv text",
    .slow = true,
    .seconds = 10,
    .answer = answer,
};
