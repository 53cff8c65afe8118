/* information_schema.settings: what SHOW ALL prints and SET changes. */
#include "sql/db.h"
#include "table/registry.h"

static const struct prb_column columns[] = {
    {"name", PRB_TEXT, "", "SET name = value"},
    {"value", PRB_TEXT, "", "its current value in this connection"},
    {"unit", PRB_TEXT, "", "of the value"},
    {"doc", PRB_TEXT, "", "what it changes"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    for (size_t i = 0; i < prb_settings_count(); i++) {
        struct prb_setting setting = prb_settings_get(&prb_rows_db(rows)->settings, i);
        prb_row_begin(rows);
        prb_row_text(rows, setting.name);
        prb_row_text(rows, setting.value);
        prb_row_text(rows, setting.unit);
        prb_row_text(rows, setting.doc);
    }
    return true;
}

const struct prb_table prb_table_information_schema_settings = {
    .schema = "information_schema",
    .name = "settings",
    .doc = "what SET changes",
    .columns = columns,
    .fill = fill,
};
