/* information_schema.functions: what SHOW FUNCTIONS prints. */
#include "sql/db.h"
#include "table/registry.h"

static const struct prb_column columns[] = {
    {"form", PRB_TEXT, "", "how it is called"},
    {"kind", PRB_TEXT, "", "time, text, aggregate or SQLite"},
    {"doc", PRB_TEXT, "", "what it returns"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    size_t count;
    const struct prb_function_doc *docs = prb_function_docs(&count);
    for (size_t i = 0; i < count; i++) {
        prb_row_begin(rows);
        prb_row_text(rows, docs[i].form);
        prb_row_text(rows, docs[i].kind);
        prb_row_text(rows, docs[i].doc);
    }
    return true;
}

const struct prb_table prb_table_information_schema_functions = {
    .schema = "information_schema",
    .name = "functions",
    .doc = "functions beyond SQLite's own",
    .columns = columns,
    .fill = fill,
};
