/*
 * GET /api/v1/p/{}/query?sql=…, POST with {"sql": "…"} or the SQL itself as text/plain.  JSON has
 * the columns and rows as arrays; jsonl, csv and text as `probing query` prints them.
 */
#include <string.h>
#include <strings.h>

#include "format/format.h"
#include "format/json.h"
#include "serve/routes/rows.h"
#include "serve/work/targets.h"

PRB_DEFINE_AUTO_PTR(prb_row_writer, struct prb_row_writer, prb_row_writer_free)

struct rows {
    struct prb_serve_job *job;
    size_t count, most;
    size_t bytes;
    json_t *columns, *rows;        /* of json */
    struct prb_row_writer *writer; /* of the others */
};

/* ---- the question ---- */

/* The SQL; the caller frees it. */
char *prb_question_sql(const struct prb_question *question, struct prb_error *err)
{
    const char *value = prb_question_value(question, "sql"), *body = question->body.data;
    json_t *told = NULL;
    if (!value && body) {
        bool plain =
            question->content_type && strncasecmp(question->content_type, "text/plain", 10) == 0;
        told = plain ? NULL : json_loadb(body, question->body.len, 0, NULL);
        value = plain ? body : json_string_value(json_object_get(told, "sql"));
    }
    bool whole = value && *value && (value != body || strlen(body) == question->body.len);
    char *sql = whole ? strdup(value) : NULL;
    json_decref(told);
    if (!whole)
        prb_fail(err, PRB_USAGE, "the SQL is missing: ?sql=…, {\"sql\": \"…\"}, or as text/plain");
    else if (!sql)
        prb_nomem(err);
    return sql;
}

/* ---- rows ---- */

static void add_row(struct rows *rows, size_t columns, const char *const *names,
                    const struct prb_value *row)
{
    json_t *line = json_array();
    for (size_t i = 0; i < columns; i++) {
        json_array_append_new(line, row ? prb_json_value(row + i) : prb_json_text(names[i]));
        rows->bytes += row ? row[i].length + 16 : 0;
    }
    if (row) {
        json_array_append_new(rows->rows, line);
    } else { /* the rows of the last statement count */
        json_decref(rows->columns);
        json_array_clear(rows->rows);
        rows->columns = line;
    }
}

static bool take_row(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    struct rows *rows = context;
    if (row && (rows->count == rows->most || rows->bytes > PRB_SERVE_ANSWER_MAX)) {
        rows->job->answer->truncated = true;
        return false;
    }
    rows->count += row != NULL;
    if (rows->writer)
        return prb_row_write(rows->writer, columns, names, row) && prb_serve_job_goes_on(rows->job);
    add_row(rows, columns, names, row);
    return true;
}

static bool write_piece(void *context, const char *text, size_t length)
{
    struct prb_answer *answer = context;
    if (answer->body.len + length > PRB_SERVE_ANSWER_MAX) {
        answer->truncated = true;
        return false;
    }
    prb_buf_add(&answer->body, text, length);
    return prb_buf_ok(&answer->body);
}

/* ---- the route ---- */

static bool as_json(struct prb_serve_job *job, struct prb_db *db, const char *sql,
                    struct prb_error *err)
{
    struct rows rows = {
        .job = job, .most = PRB_SERVE_ROWS_MAX, .columns = json_array(), .rows = json_array()};
    if (!prb_db_query(db, sql, take_row, &rows, err)) {
        json_decref(rows.columns);
        json_decref(rows.rows);
        return false;
    }
    return prb_answer_json(job->answer,
                           json_pack("{s:o,s:o,s:o,s:b}", "columns", rows.columns, "rows",
                                     rows.rows, "warning", prb_json_text(prb_db_warning(db)),
                                     "truncated", job->answer->truncated),
                           err);
}

static bool as_text(struct prb_serve_job *job, struct prb_db *db, const char *sql,
                    struct prb_error *err)
{
    bool table = strcmp(job->format, "text") == 0;
    const struct prb_row_options options = {.write = write_piece, .context = job->answer};
    PRB_AUTO(prb_row_writer)
    struct prb_row_writer *writer =
        prb_row_writer_new(table ? "table" : job->format, &options, err);
    struct rows rows = {.job = job,
                        .writer = writer,
                        .most = table ? PRB_SERVE_ROWS_MAX : PRB_SERVE_ROWS_STREAM_MAX};
    job->answer->type = strcmp(job->format, "csv") == 0     ? "text/csv; charset=utf-8"
                        : strcmp(job->format, "jsonl") == 0 ? "application/jsonl"
                                                            : "text/plain; charset=utf-8";
    return writer && prb_db_query(db, sql, take_row, &rows, err) &&
           (prb_row_writer_end(writer, err) || job->answer->truncated);
}

bool prb_answer_rows(struct prb_serve_job *job, const char *sql, struct prb_error *err)
{
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    struct prb_db *db = held ? prb_serve_target_db(held, err) : NULL;
    if (!db)
        return false;
    prb_db_watch(db, prb_serve_job_goes_on, job);
    bool ok =
        strcmp(job->format, "json") == 0 ? as_json(job, db, sql, err) : as_text(job, db, sql, err);
    prb_db_watch(db, NULL, NULL);
    return ok;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    PRB_AUTO_FREE char *sql = prb_question_sql(job->question, err);
    return sql && prb_answer_rows(job, sql, err);
}

const struct prb_route prb_route_query = {
    .methods = PRB_GET | PRB_POST,
    .path = "/api/v1/p/{}/query",
    .summary = "rows of a SQL statement",
    .grant = PRB_MAY_LOOK,
    .formats = "json jsonl csv text",
    .parameters = "sql every for",
    .body = "sql",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
