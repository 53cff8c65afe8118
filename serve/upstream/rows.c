/*
 * Rows as columns of one type each.  SQLite has types by cell: a column of integers is SeqI64, with
 * reals among them SeqF64, with a text SeqText.
 */
#include <string.h>
#include <time.h>

#include "serve/upstream/upstream.h"

#include "format/json.h"
#include "serve/work/targets.h"

struct rows {
    struct prb_serve_job *job;
    size_t most, count, bytes, columns;
    json_t *names, *cells; /* cells: for each column an array */
};

static void begin(struct rows *rows, size_t columns, const char *const *names)
{
    json_array_clear(rows->names);
    json_array_clear(rows->cells);
    rows->columns = columns;
    rows->count = 0; /* the rows of the last statement count */
    for (size_t i = 0; i < columns; i++) {
        json_array_append_new(rows->names, prb_json_text(names[i]));
        json_array_append_new(rows->cells, json_array());
    }
}

static bool take(void *context, size_t columns, const char *const *names,
                 const struct prb_value *row)
{
    struct rows *rows = context;
    if (!row) {
        begin(rows, columns, names);
        return true;
    }
    if (rows->count == rows->most || rows->bytes > PRB_SERVE_ANSWER_MAX) {
        rows->job->answer->truncated = true;
        return false;
    }
    rows->count++;
    for (size_t i = 0; i < columns; i++) {
        json_array_append_new(json_array_get(rows->cells, i), prb_json_value(row + i));
        rows->bytes += row[i].length + 16;
    }
    return true;
}

/* ---- types ---- */

static const char *type_of(const json_t *cells)
{
    const json_t *one;
    bool real = false, integer = false;
    size_t i;
    json_array_foreach(cells, i, one)
    {
        if (json_is_string(one))
            return "SeqText";
        real = real || json_is_real(one);
        integer = integer || json_is_integer(one);
    }
    return real ? "SeqF64" : integer ? "SeqI64" : "SeqText";
}

/* The cell as its column has it; a new reference. */
static json_t *of_type(json_t *one, const char *type)
{
    char text[32];
    if (strcmp(type, "SeqI64") == 0)
        return json_integer(json_integer_value(one));
    if (strcmp(type, "SeqF64") == 0)
        return json_real(json_number_value(one));
    if (json_is_string(one))
        return json_incref(one);
    if (json_is_integer(one))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(one));
    else if (json_is_real(one))
        snprintf(text, sizeof text, "%.15g", json_real_value(one));
    else
        *text = '\0';
    return json_string(text);
}

static json_t *typed(json_t *cells, const char *name, json_t *nulls)
{
    const char *type = type_of(cells);
    json_t *sequence = json_array(), *missing = NULL, *one;
    size_t i;
    json_array_foreach(cells, i, one)
    {
        if (json_is_null(one)) {
            if (!missing)
                missing = json_array();
            json_array_append_new(missing, json_integer((json_int_t)i));
        }
        json_array_append_new(sequence, of_type(one, type));
    }
    if (missing)
        json_object_set_new(nulls, name, missing);
    return json_pack("{s:o}", type, sequence);
}

bool prb_upstream_rows(struct prb_serve_job *job, const char *sql, size_t limit,
                       struct prb_frame_of_rows *out, struct prb_error *err)
{
    json_auto_t *names = json_array(), *cells = json_array();
    struct rows rows = {.job = job,
                        .most = limit && limit < PRB_SERVE_ROWS_MAX ? limit : PRB_SERVE_ROWS_MAX,
                        .names = names,
                        .cells = cells};
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    struct prb_db *db = held ? prb_serve_target_db(held, err) : NULL;
    if (!db)
        return false;
    prb_db_watch(db, prb_serve_job_goes_on, job);
    bool ok = prb_db_query(db, sql, take, &rows, err);
    prb_db_watch(db, NULL, NULL);
    if (!ok)
        return false;
    *out = (struct prb_frame_of_rows){json_incref(names), json_array(), json_object(),
                                      rows.columns ? rows.count : 0};
    for (size_t i = 0; i < rows.columns; i++)
        json_array_append_new(out->cols,
                              typed(json_array_get(cells, i),
                                    json_string_value(json_array_get(names, i)), out->nulls));
    return true;
}

/* ---- questions ---- */

const char *prb_upstream_statement(const json_t *body, size_t *limit, struct prb_error *err)
{
    const json_t *payload = json_object_get(body, "payload"), *asked = payload ? payload : body;
    const char *sql = json_string_value(json_object_get(asked, "expr"));
    json_int_t rows = json_integer_value(json_object_get(json_object_get(asked, "opts"), "limit"));
    *limit = rows > 0 ? (size_t)rows : 0;
    if (sql && *sql)
        return sql;
    prb_fail(err, PRB_USAGE, "the body has no statement: {\"expr\": \"SELECT …\"}");
    return NULL;
}

json_int_t prb_upstream_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (json_int_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
