/*
 * POST /query {"version", "message_id", "timestamp", "payload": {"expr": "SELECT …"}}: the same
 * envelope back, its payload a DataFrame of columns, "Nil", or an Error.
 */
#include "serve/upstream/upstream.h"

#include "format/json.h"

static const char *code_of(enum prb_code code)
{
    static const struct {
        enum prb_code code;
        const char *name;
    } names[] = {{PRB_NOT_FOUND, "NotFound"},     {PRB_QUERY, "ParseError"},
                 {PRB_USAGE, "ParseError"},       {PRB_PERMISSION, "PermissionDenied"},
                 {PRB_TIMEOUT, "TimeoutError"},   {PRB_NOMEM, "ResourceExhausted"},
                 {PRB_BUSY, "ResourceExhausted"}, {PRB_INTERNAL, "Internal"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            return names[i].name;
    return "ExecutionError";
}

/* The payload; nulls: what meta says of it, or NULL. */
static json_t *ask(struct prb_serve_job *job, const json_t *body, json_t **nulls,
                   struct prb_error *err)
{
    struct prb_frame_of_rows rows;
    size_t limit;
    const char *sql = prb_upstream_statement(body, &limit, err);
    if (!sql || !prb_upstream_target(job, err) || !prb_upstream_rows(job, sql, limit, &rows, err))
        return NULL;
    *nulls = rows.nulls;
    if (json_array_size(rows.names))
        return json_pack("{s:{s:o,s:o,s:I}}", "DataFrame", "names", rows.names, "cols", rows.cols,
                         "size", (json_int_t)rows.size);
    json_decref(rows.names);
    json_decref(rows.cols);
    return json_string("Nil");
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const struct prb_buf *asked = &job->question->body;
    struct prb_error why = {0};
    json_t *nulls = NULL;
    json_auto_t *body = asked->len ? json_loadb(asked->data, asked->len, 0, NULL) : NULL;
    if (!json_is_object(body))
        return prb_fail(err, PRB_USAGE, "the body is not a JSON object");
    json_t *payload = ask(job, body, &nulls, &why);
    if (!payload) {
        job->answer->status = prb_http_status(why.code);
        payload = json_pack("{s:{s:s,s:o,s:o}}", "Error", "code", code_of(why.code), "message",
                            prb_json_text(why.text), "details",
                            *why.remedy ? prb_json_text(why.remedy) : json_null());
    }
    json_t *id = json_object_get(body, "message_id");
    json_t *told = json_pack("{s:{s:i,s:i,s:i},s:O,s:I,s:o}", "version", "major", 0, "minor", 1,
                             "patch", 0, "message_id", id ? id : json_null(), "timestamp",
                             prb_upstream_now(), "payload", payload);
    if (told && json_object_size(nulls))
        json_object_set_new(told, "meta", json_pack("{s:O}", "nulls", nulls));
    json_decref(nulls);
    return prb_answer_json(job->answer, told, err);
}

const struct prb_route prb_route_upstream_query = {
    .methods = PRB_POST,
    .path = "/query",
    .summary = "rows of a SQL statement, by columns in an envelope",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "pid",
    .slow = true,
    .upstream = true,
    .seconds = 30,
    .answer = answer,
};
