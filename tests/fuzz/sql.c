/*
 * Fuzz target: SQL text.  The whole path of a query over a table made up here: tokens, dialect,
 * SQLite, the virtual table, the functions, and the error with its place.  Any text must end in
 * rows or in an error with words.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sql/db.h"
#include "sql/dialect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct prb_column columns[] = {
    {"n", PRB_INTEGER, "count", "a number"},
    {"text", PRB_TEXT, "", "a text"},
    {"timestamp", PRB_REAL, "s", "a time"},
    {"up_to", PRB_INTEGER, "count", "how many", .hidden = true},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    const struct prb_value *up_to = prb_rows_argument(rows, "up_to");
    int64_t count = up_to && up_to->type == PRB_INTEGER && up_to->integer < 20 ? up_to->integer : 5;
    for (int64_t i = 0; i < count; i++) {
        prb_row_begin(rows);
        prb_row_int(rows, i);
        prb_row_text(rows, i % 2 ? "odd" : NULL);
        prb_row_real(rows, (double)i * 1000);
    }
    return true;
}

static const struct prb_table fuzzed = {
    .schema = "python", .name = "backtrace", .doc = "made up", .columns = columns, .fill = fill};
static const struct prb_table *const tables[] = {&fuzzed};

static bool ignore(void *context, size_t count, const char *const *names,
                   const struct prb_value *row)
{
    size_t *left = context;
    for (size_t i = 0; i < count; i++)
        if (!names[i] || (row && (row[i].type == PRB_TEXT || row[i].type == PRB_BLOB) &&
                          row[i].length && !row[i].text))
            abort();
    return (*left)-- > 0;
}

/* Every byte of the text belongs to exactly one token. */
static void check_tokens(const char *text, size_t len)
{
    for (size_t offset = 0; offset < len;) {
        struct prb_token token = prb_token_at(text, len, offset);
        if (token.offset != offset || token.len == 0 || token.len > len - offset)
            abort();
        offset += token.len;
    }
}

/* Every place of a rewritten statement leads back into the text. */
static void check_dialect(const char *text, size_t len)
{
    for (size_t offset = 0, before = len + 1; offset < len && offset != before;) {
        PRB_AUTO(prb_statement) struct prb_statement statement = {0};
        before = offset;
        if (!prb_dialect_next(NULL, text, len, &offset, &statement, NULL))
            return;
        for (size_t i = 0; statement.kind == PRB_STATEMENT_QUERY && i <= statement.sql.len; i++)
            if (prb_statement_origin(&statement, i) > len)
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prb_error err = {0};
    size_t left = 1000;
    if (size > 4096)
        return 0;
    check_tokens((const char *)data, size);
    check_dialect((const char *)data, size);
    PRB_AUTO_FREE char *text = malloc(size + 1);
    PRB_AUTO(prb_db) struct prb_db *db = prb_db_open_tables(NULL, tables, 1, &err);
    if (!text || !db)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    db->settings.query_timeout = 0.05;
    if (!prb_db_query(db, text, ignore, &left, &err) && (err.code == PRB_OK || !err.text[0]))
        abort();
    return 0;
}
