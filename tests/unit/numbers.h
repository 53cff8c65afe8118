/* A made-up table of numbers, and queries over it whose rows are compared as text. */
#ifndef PRB_TESTS_UNIT_NUMBERS_H
#define PRB_TESTS_UNIT_NUMBERS_H

#include "unit.h"

#include <stdio.h>

#include "sql/db.h"

/* Once a connection is open: whether SQLite tells what terms compare with, and where a statement is
 * wrong (3.38). */
static inline bool sqlite_tells(void) { return sqlite3_libversion_number() >= 3038000; }

/* ---- the table ---- */

static int fills; /* calls of the fill functions */
static unsigned needs_seen;
static bool costly_wanted;

static const struct prb_column numbers_columns[] = {
    {"n", PRB_INTEGER, "count", "the number"},
    {"big", PRB_INTEGER, "", "64 bits"},
    {"real", PRB_REAL, "", "n / 2"},
    {"text", PRB_TEXT, "", "NULL for even ones"},
    {"costly", PRB_TEXT, "", "needs locals", .needs = PRB_NEED_LOCALS},
    {"kind", PRB_TEXT, "", "a or b", .asks = PRB_NEED_NATIVE, .unless = "a"},
    {"up_to", PRB_INTEGER, "count", "how many", .hidden = true},
    {"label", PRB_TEXT, "", "goes into text", .hidden = true},
    {0},
};

static bool fill_numbers(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    const struct prb_value *up_to = prb_rows_argument(rows, "up_to");
    const struct prb_value *label = prb_rows_argument(rows, "label");
    fills++;
    needs_seen = prb_rows_needs(rows);
    costly_wanted = prb_rows_wants(rows, "costly");
    for (int64_t i = 0; i < (up_to ? up_to->integer : 3); i++) {
        prb_row_begin(rows);
        prb_row_int(rows, i);
        prb_row_int(rows, INT64_MAX - i);
        prb_row_real(rows, (double)i / 2);
        prb_row_text(rows, i % 2 ? (label ? label->text : "odd") : NULL);
        prb_row_null(rows);
        prb_row_textn(rows, "ab", 1); /* not the b */
        prb_row_int(rows, 1);         /* one cell more than there are columns */
    }
    return true;
}

static const struct prb_table numbers = {.schema = "fake",
                                         .name = "numbers",
                                         .doc = "some numbers",
                                         .columns = numbers_columns,
                                         .fill = fill_numbers};

/* ---- rows as text ---- */

static bool collect(void *context, size_t columns, const char *const *names,
                    const struct prb_value *row)
{
    struct prb_buf *out = context;
    for (size_t i = 0; i < columns; i++) {
        prb_buf_adds(out, i ? "," : "");
        if (!row)
            prb_buf_adds(out, names[i]);
        else if (row[i].type == PRB_INTEGER)
            prb_buf_addf(out, "%lld", (long long)row[i].integer);
        else if (row[i].type == PRB_REAL)
            prb_buf_addf(out, "%.6g", row[i].real);
        else if (row[i].type == PRB_TEXT)
            prb_buf_addf(out, "'%s'", row[i].text);
        else
            prb_buf_adds(out, row[i].type == PRB_BLOB ? "blob" : "NULL");
    }
    prb_buf_addc(out, '|');
    return true;
}

static inline void assert_rows(struct prb_db *db, const char *sql, const char *expected)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_error err;
    if (!prb_db_query(db, sql, collect, &out, &err))
        fail_msg("%s: %s", sql, err.text);
    const char *text = out.data ? out.data : "";
    if (strcmp(text, expected) != 0)
        fail_msg("%s: %s, not %s", sql, text, expected);
}

/* The rows without the names. */
static inline void assert_values(struct prb_db *db, const char *sql, const char *expected)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_error err;
    if (!prb_db_query(db, sql, collect, &out, &err))
        fail_msg("%s: %s", sql, err.text);
    const char *text = out.data ? strchr(out.data, '|') + 1 : "";
    if (strcmp(text, expected) != 0)
        fail_msg("%s: %s, not %s", sql, text, expected);
}

static inline struct prb_error refused(struct prb_db *db, const char *sql)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_error err = {0};
    if (prb_db_query(db, sql, collect, &out, &err))
        fail_msg("%s was not refused: %s", sql, out.data ? out.data : "");
    assert_true(err.text[0] != '\0');
    return err;
}

static inline void assert_refused(struct prb_db *db, const char *sql, const char *text,
                                  const char *remedy)
{
    struct prb_error err = refused(db, sql);
    if (err.code != PRB_QUERY || !strstr(err.text, text) || !strstr(err.remedy, remedy))
        fail_msg("%s: %s %s / %s", sql, prb_code_name(err.code), err.text, err.remedy);
}

#endif
