/* GET, POST /api/v1/jobs/{}/query: a statement over the rows of all ranks; `probing -t @JOB query`. */
#include <string.h>

#include "serve/routes/job_roster.h"
#include "serve/routes/rows.h"

#define SQL_MAX ((size_t)100 << 10) /* bytes: it is a word of a command (execve(2)) */

/* {"rows": [{name: value}], "coverage"} as columns and rows. */
static bool by_columns(struct prb_serve_job *job, struct prb_error *err)
{
    struct prb_answer *answer = job->answer;
    json_auto_t *told = json_loadb(answer->body.data ? answer->body.data : "", answer->body.len,
                                   JSON_ALLOW_NUL, NULL);
    json_t *columns = json_array(), *rows = json_array(), *row, *value;
    const json_t *given = json_object_get(told, "rows");
    const char *name;
    size_t i, most = PRB_SERVE_ROWS_MAX;
    json_object_foreach(json_array_get(given, 0), name, value)
        json_array_append_new(columns, json_string(name));
    json_array_foreach(given, i, row)
    {
        json_t *line = i < most ? json_array() : NULL;
        json_object_foreach(row, name, value) json_array_append(line, value);
        if (line)
            json_array_append_new(rows, line);
    }
    answer->truncated = json_array_size(given) > most;
    prb_buf_deinit(&answer->body);
    answer->body = (struct prb_buf){0};
    json_t *coverage = json_incref(json_object_get(told, "coverage"));
    return prb_answer_json(answer,
                           json_pack("{s:o,s:o,s:n,s:b,s:o*}", "columns", columns, "rows", rows,
                                     "warning", "truncated", answer->truncated, "coverage",
                                     coverage),
                           err);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char format[24];
    bool json = strcmp(job->format, "json") == 0, text = strcmp(job->format, "text") == 0;
    PRB_AUTO_FREE char *sql = prb_question_sql(job->question, err);
    if (!sql)
        return false;
    if (strlen(sql) > SQL_MAX)
        return prb_fail(err, PRB_USAGE, "the statement has more than %zu bytes", SQL_MAX);
    snprintf(format, sizeof format, "--format=%s", text ? "table" : job->format);
    const char *words[7] = {NULL, NULL, "query", format, "--", sql};
    return prb_serve_job_answer(job, words, err) && (!json || by_columns(job, err));
}

const struct prb_route prb_route_job_query = {
    .methods = PRB_GET | PRB_POST,
    .path = "/api/v1/jobs/{}/query",
    .summary = "rows of a SQL statement over all ranks; with the coverage",
    .grant = PRB_MAY_LOOK,
    .formats = "json jsonl csv text",
    .parameters = "sql",
    .body = "sql",
    .slow = true,
    .seconds = 40,
    .answer = answer,
};
