/* information_schema.tables: what SHOW TABLES and SHOW CREATE TABLE print, from the descriptors. */
#include "sql/db.h"
#include "table/registry.h"

static const struct prb_column columns[] = {
    {"table_schema", PRB_TEXT, "", "the part before the dot"},
    {"table_name", PRB_TEXT, "", "the part after it"},
    {"doc", PRB_TEXT, "", "what its rows are"},
    {"definition", PRB_TEXT, "", "its columns as CREATE TABLE, with units and docs as comments"},
    {0},
};

static void define(struct prb_buf *out, const struct prb_table *table)
{
    prb_buf_addf(out, "-- %s\nCREATE TABLE %s.%s (\n", table->doc, table->schema, table->name);
    for (const struct prb_column *column = table->columns; column->name; column++) {
        prb_buf_addf(out, "    %s %s%s%s -- ", column->name, prb_type_name(column->type),
                     column->hidden ? " HIDDEN" : "", column[1].name ? "," : "");
        if (*column->unit)
            prb_buf_addf(out, "%s; ", column->unit);
        prb_buf_addf(out, "%s\n", column->doc);
    }
    prb_buf_adds(out, ")");
}

/* A saved profile has its samples alone; of what an ended process left, a process's tables have the
 * rows that were kept. */
static bool is_listed(const struct prb_db *db, const struct prb_table *table)
{
    if (db->profile)
        return prb_table_is_schema(table) || table == &prb_table_profiling_data;
    return !table->needs_target || table->kept || db->target || !db->ended;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_db *db = prb_rows_db(rows);
    for (size_t i = 0; i < db->table_count; i++) {
        if (!is_listed(db, db->tables[i]))
            continue;
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        if (prb_rows_wants(rows, "definition"))
            define(&text, db->tables[i]);
        if (!prb_buf_ok(&text))
            return prb_nomem(err);
        prb_row_begin(rows);
        prb_row_text(rows, db->tables[i]->schema);
        prb_row_text(rows, db->tables[i]->name);
        prb_row_text(rows, db->tables[i]->doc);
        prb_row_text(rows, text.data);
    }
    return true;
}

const struct prb_table prb_table_information_schema_tables = {
    .schema = "information_schema",
    .name = "tables",
    .doc = "all tables",
    .columns = columns,
    .fill = fill,
};
