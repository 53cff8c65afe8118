/*
 * A SQL table is one file in lib/table: one constant struct prb_table and a function that fills its rows.
 *
 * To add one:
 *   1. table/SCHEMA_NAME.c: columns with type, unit and doc, a fill function, `const struct prb_table prb_table_SCHEMA_NAME`.
 *   2. Its name in table/tables.def, its file in table/local.mk.
 *   3. A case in tests/live/test_tables.py.
 * The engine does the rest: virtual table, SHOW TABLES, DESCRIBE, documentation.
 */
#ifndef PRB_SQL_TABLE_H
#define PRB_SQL_TABLE_H

#include "base/error.h"

struct prb_rows; /* the rows being made (sql/rows.h) */
struct prb_db;

struct prb_column {
    const char *name;
    enum prb_type type;
    const char *unit; /* "bytes", "s", "count", "addr", "id", "ratio", or "" */
    const char *doc;
    bool hidden;      /* an argument: WHERE column = value, or table(value) */
};

struct prb_table {
    const char *schema, *name;
    const char *doc;                   /* one sentence */
    const struct prb_column *columns;  /* ends with name NULL */
    bool needs_target;
    /*
     * Append the rows of this moment.  rows tells the arguments (prb_rows_argument) and the target.
     * False: the query fails with err; a row that could only be read in part is a row with NULLs.
     */
    bool (*fill)(struct prb_rows *rows, struct prb_error *err);
};

/* ---- for fill functions ---- */
struct prb_target *prb_rows_target(struct prb_rows *rows);
bool prb_rows_reveal(const struct prb_rows *rows);
/* The value of a hidden column in WHERE, or NULL. */
const struct prb_value *prb_rows_argument(const struct prb_rows *rows, const char *column);
/* Whether the statement uses the column (so that costly ones can be left NULL). */
bool prb_rows_wants(const struct prb_rows *rows, const char *column);
/* Begin a row; then cells in the order of the columns; missing ones are NULL.  Text is copied. */
void prb_row_begin(struct prb_rows *rows);
void prb_row_null(struct prb_rows *rows);
void prb_row_int(struct prb_rows *rows, int64_t value);
void prb_row_real(struct prb_rows *rows, double value);
void prb_row_text(struct prb_rows *rows, const char *text); /* NULL text is NULL */
/* All stacks of this statement: taken once, whichever tables ask (one consistent view). */
const struct prb_stacks *prb_rows_stacks(struct prb_rows *rows, bool native, bool locals, struct prb_error *err);

#endif
