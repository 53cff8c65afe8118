/* POST /query/dto {"expr": "SELECT …", "opts": {"limit": 10}}: rows by columns. */
#include "serve/upstream/upstream.h"

#include "format/json.h"

static json_t *ask(struct prb_serve_job *job, const json_t *body, struct prb_error *err)
{
    struct prb_frame_of_rows rows;
    size_t limit;
    const char *sql = prb_upstream_statement(body, &limit, err);
    if (!sql || !prb_upstream_target(job, err) || !prb_upstream_rows(job, sql, limit, &rows, err))
        return NULL;
    bool any = json_array_size(rows.names) > 0;
    return json_pack("{s:{s:s,s:{s:o,s:o,s:I}},s:I,s:b,s:n,s:o}", "payload", "type",
                     any ? "DataFrame" : "Nil", "value", "names", rows.names, "cols", rows.cols,
                     "size", (json_int_t)rows.size, "timestamp", prb_upstream_now(), "success", 1,
                     "message", "nulls", rows.nulls);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const struct prb_buf *asked = &job->question->body;
    struct prb_error why = {0};
    json_auto_t *body = asked->len ? json_loadb(asked->data, asked->len, 0, NULL) : NULL;
    if (!json_is_object(body))
        return prb_fail(err, PRB_USAGE, "the body is not a JSON object");
    json_t *told = ask(job, body, &why);
    if (!told) {
        job->answer->status = prb_http_status(why.code);
        told = json_pack("{s:{s:s,s:{s:s,s:o}},s:I,s:b,s:o}", "payload", "type", "Error", "value",
                         "code", prb_code_name(why.code), "message", prb_json_text(why.text),
                         "timestamp", prb_upstream_now(), "success", 0, "message",
                         prb_json_text(why.text));
    }
    return prb_answer_json(job->answer, told, err);
}

const struct prb_route prb_route_upstream_query_dto = {
    .methods = PRB_POST,
    .path = "/query/dto",
    .summary = "rows of a SQL statement, by columns",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "pid",
    .slow = true,
    .upstream = true,
    .seconds = 30,
    .answer = answer,
};
