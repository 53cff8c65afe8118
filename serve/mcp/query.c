/* SQL, and the tables that it may name. */
#include <string.h>

#include "format/json.h"
#include "serve/mcp/mcp.h"

PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

struct rows {
    struct prb_mcp_call *call;
    json_t *columns, *rows;
    json_int_t most;
};

static json_t *cell(const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        return json_integer(value->integer);
    if (value->type == PRB_REAL)
        return json_real(value->real) ?: json_null();
    return value->type == PRB_TEXT ? prb_json_text(value->text) : json_null();
}

static bool take_row(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    struct rows *rows = context;
    if (!row) {
        json_array_clear(rows->columns);
        json_array_clear(rows->rows);
        for (size_t i = 0; i < columns; i++)
            json_array_append_new(rows->columns, prb_json_text(names[i]));
        return true;
    }
    if ((json_int_t)json_array_size(rows->rows) == rows->most) {
        prb_mcp_put(rows->call, "truncated", json_true());
        return false;
    }
    json_t *line = json_array();
    for (size_t i = 0; i < columns; i++)
        json_array_append_new(line, cell(&row[i]));
    json_array_append_new(rows->rows, line);
    return true;
}

static bool run_sql(struct prb_mcp_call *call, struct prb_db *db, const char *sql, json_int_t most,
                    struct prb_error *err)
{
    struct rows rows = {call, json_array(), json_array(), most};
    prb_mcp_put(call, "columns", rows.columns);
    prb_mcp_put(call, "rows", rows.rows);
    prb_mcp_put(call, "truncated", json_false());
    prb_db_watch(db, call->mcp->goes_on, call->mcp->context);
    bool ok = prb_db_query(db, sql, take_row, &rows, err);
    prb_db_watch(db, NULL, NULL);
    prb_mcp_put(call, "warning", prb_json_text(prb_db_warning(db)));
    return ok;
}

static bool query(struct prb_mcp_call *call, struct prb_error *err)
{
    if (prb_mcp_is_job(call))
        return prb_mcp_job_query(call, prb_mcp_text_argument(call, "sql"),
                                 (size_t)prb_mcp_number(call, "limit", 100), err);
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_mcp_hold(call, true, err);
    struct prb_db *db = held ? prb_serve_target_db(held, err) : NULL;
    return db && run_sql(call, db, prb_mcp_text_argument(call, "sql"),
                         prb_mcp_number(call, "limit", 100), err);
}

#define ROWS_SCHEMA                                                                                \
    "{\"type\":\"object\",\"properties\":{\"columns\":{\"type\":\"array\",\"items\":{\"type\":"    \
    "\"string\"}},\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"array\"}},\"warning\":{"      \
    "\"type\":[\"string\",\"null\"]},\"truncated\":{\"type\":\"boolean\"}},\"required\":["         \
    "\"columns\",\"rows\"]}"

const struct prb_mcp_tool prb_mcp_query = {
    .name = "query",
    .title = "Ask in SQL",
    .description =
        "Runs SQL (SQLite's, read-only) over the tables of a process, core or dump: stacks, "
        "locals, "
        "objects, tensors, memory, steps. `schema` has the tables. One statement sees one moment.",
    .input =
        "{\"type\":\"object\",\"properties\":{" PRB_MCP_TARGET
        ",\"sql\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":20000},\"limit\":{\"type\":"
        "\"integer\",\"minimum\":1,\"maximum\":1000,\"description\":\"rows; 100 if not given\"}},"
        "\"required\":[\"target\",\"sql\"],\"additionalProperties\":false}",
    .output = ROWS_SCHEMA,
    .call = query,
};

static bool schema(struct prb_mcp_call *call, struct prb_error *err)
{
    const char *table = prb_mcp_text_argument(call, "table");
    char sql[200] = "SELECT table_schema || '.' || table_name AS \"table\", doc FROM "
                    "information_schema.tables";
    if (table &&
        table[strspn(table, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")])
        return prb_fail(err, PRB_USAGE, "\"%.60s\" is not the name of a table", table);
    if (table)
        snprintf(sql, sizeof sql, "DESCRIBE %.100s", table);
    PRB_AUTO(prb_db) struct prb_db *db = prb_db_open(NULL, err);
    return db && run_sql(call, db, sql, 1000, err);
}

const struct prb_mcp_tool prb_mcp_schema = {
    .name = "schema",
    .title = "Tables and columns",
    .description =
        "The SQL tables with a sentence each; with `table` its columns: type, unit, meaning.",
    .input =
        "{\"type\":\"object\",\"properties\":{\"table\":{\"type\":\"string\",\"maxLength\":100,"
        "\"description\":\"such as python.backtrace\"}},\"additionalProperties\":false}",
    .output = ROWS_SCHEMA,
    .call = schema,
};
