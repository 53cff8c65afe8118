/* information_schema.columns: what DESCRIBE prints, from the descriptors. */
#include "sql/db.h"
#include "table/registry.h"

static const struct prb_column columns[] = {
    {"table_schema", PRB_TEXT, "", "schema of its table"},
    {"table_name", PRB_TEXT, "", "its table"},
    {"ordinal_position", PRB_INTEGER, "count", "from 1"},
    {"column_name", PRB_TEXT, "", "its name"},
    {"data_type", PRB_TEXT, "", "INTEGER, REAL or TEXT; any of its values may be NULL"},
    {"unit", PRB_TEXT, "", "bytes, s (seconds), count, addr (an address), id, ratio, or empty"},
    {"doc", PRB_TEXT, "", "what its values mean"},
    {"is_argument", PRB_INTEGER, "",
     "1: hidden, an argument that is given as WHERE name = value or table(value)"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    const struct prb_db *db = prb_rows_db(rows);
    for (size_t i = 0; i < db->table_count; i++) {
        const struct prb_table *table = db->tables[i];
        for (size_t c = 0; table->columns[c].name; c++) {
            const struct prb_column *column = &table->columns[c];
            prb_row_begin(rows);
            prb_row_text(rows, table->schema);
            prb_row_text(rows, table->name);
            prb_row_int(rows, (int64_t)c + 1);
            prb_row_text(rows, column->name);
            prb_row_text(rows, prb_type_name(column->type));
            prb_row_text(rows, column->unit);
            prb_row_text(rows, column->doc);
            prb_row_int(rows, column->hidden);
        }
    }
    return true;
}

const struct prb_table prb_table_information_schema_columns = {
    .schema = "information_schema",
    .name = "columns",
    .doc = "the columns of all tables",
    .columns = columns,
    .fill = fill,
};
