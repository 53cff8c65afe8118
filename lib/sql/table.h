/*
 * A SQL table is one file in lib/table: one constant struct prb_table and a function that fills its
 * rows.
 *
 * To add one:
 *   1. lib/table/SCHEMA_NAME.c: columns with type, unit and doc, a fill function, and
 *      `const struct prb_table prb_table_SCHEMA_NAME`.
 *   2. The file in TABLES (lib/table/local.mk), at its place in SHOW TABLES.
 *   3. A case in tests/live/test_tables.py.
 *   4. `make -C build docs` renews the list of tables in lib/sql/README.md.
 * The engine does the rest: virtual table, SHOW TABLES, DESCRIBE, documentation.
 */
#ifndef PRB_SQL_TABLE_H
#define PRB_SQL_TABLE_H

#include "base/error.h"

struct prb_rows; /* the rows being made (sql/rows.h) */
struct prb_db;

/* What a statement needs of the stacks beyond the Python frames. */
enum { PRB_NEED_LOCALS = 1, PRB_NEED_NATIVE = 2 };

struct prb_column {
    const char *name;
    enum prb_type type;
    const char *unit; /* "bytes", "s", "ms", "ns", "count", "addr", "id", "ratio", "%", "1/s",
                       * "MB" (2^20 bytes), "KiB", or "" */
    const char *doc;
    bool hidden;        /* an argument: WHERE column = value, or table(value); after the visible */
    bool aside;         /* with hidden: no argument, only left out of SELECT *; after all others */
    unsigned needs;     /* PRB_NEED_*: a statement that uses the column needs these */
    unsigned asks;      /* PRB_NEED_*: a statement with a WHERE term on the column needs these … */
    const char *unless; /* … unless the term is column = this text */
    bool of_rank; /* the rank of the process whose rows these are, as fleet/ has it, or NULL */
};

struct prb_table {
    const char *schema, *name; /* schema "main": needs no qualifier */
    const char *doc;           /* one sentence */
    /* ends with name NULL; beyond 63 SQLite reports for all together whether one is used */
    const struct prb_column *columns;
    bool needs_target;
    bool recorded;  /* its rows are what processes recorded: a saved profile has none */
    bool timed;     /* fill leaves out what it can of rows beyond prb_rows_times */
    bool kept;      /* the store has rows of it, which need no target */
    bool fetched;   /* its rows come from elsewhere: struct prb_table_source, fetch */
    unsigned needs; /* PRB_NEED_*: of every statement that uses the table */
    /*
     * Append the rows of this moment.  rows gives the arguments and the target.
     * False: the query fails with err; a row that could only be read in part is a row with NULLs.
     * Called at most once in a statement for the same arguments and times.
     */
    bool (*fill)(struct prb_rows *rows, struct prb_error *err);
};

/*
 * Tables that are found at run time, with schemas that constant tables have, too.  Asked between
 * statements, so that a table of a running statement never goes away.
 */
struct prb_table_source {
    /* Whether the tables are others than at the last list(); at first: whether there are any. */
    bool (*changed)(struct prb_table_source *source);
    /* The tables of now; those of the last time end here.  Borrowed. */
    bool (*list)(struct prb_table_source *source, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err);
    void (*free)(struct prb_table_source *source);
    /* What the list leaves out, one sentence, or NULL; asked after list().  May be NULL. */
    const char *(*note)(struct prb_table_source *source);
    /* Where it has the rows of several processes: have what is recorded be that of one of them, from 0
     * on, for tables that are filled for each (struct prb_table, recorded).  False: there are no
     * more, or it is of one; then it is that of all again.  May be NULL. */
    bool (*choose)(struct prb_table_source *source, size_t process);
    /* Of a source with tables that are fetched: a statement is planned, and what it asks of them is
     * in db->view (pushed).  After it fill() gives the rows.  May be NULL. */
    bool (*fetch)(struct prb_table_source *source, struct prb_db *db, struct prb_error *err);
    /* What was fetched, as rows (prb_db_plan).  May be NULL. */
    bool (*plan)(struct prb_table_source *source, struct prb_db *db, prb_row_fn *each,
                 void *context, struct prb_error *err);
};

/* ---- for fill functions ---- */
const struct prb_table *prb_rows_table(const struct prb_rows *rows);
struct prb_target *
prb_rows_target(const struct prb_rows *rows); /* non-NULL where needs_target and not kept */
struct prb_db *prb_rows_db(const struct prb_rows *rows);
bool prb_rows_reveal(const struct prb_rows *rows);
/* The value that WHERE gives a hidden column, or NULL. */
const struct prb_value *prb_rows_argument(const struct prb_rows *rows, const char *column);
/* What a WHERE says of a column that is a time (timestamp, time or ts): its rows beyond are not
 * needed. column NULL: nothing. */
struct prb_times {
    const char *column;
    double least, most;
};
const struct prb_times *prb_rows_times(const struct prb_rows *rows);
/* Whether the statement uses the column (so that costly ones can be left NULL). */
bool prb_rows_wants(const struct prb_rows *rows, const char *column);
/* Begin a row; then cells in the order of the columns; missing ones are NULL.  Text is copied. */
void prb_row_begin(struct prb_rows *rows);
void prb_row_null(struct prb_rows *rows);
/* So many cells of columns that the statement does not use (prb_rows_wants). */
void prb_row_skip(struct prb_rows *rows, size_t count);
void prb_row_int(struct prb_rows *rows, int64_t value);
void prb_row_real(struct prb_rows *rows, double value);
void prb_row_text(struct prb_rows *rows,
                  const char *text); /* NULL text is NULL; no UTF-8: U+FFFD for each such byte */
void prb_row_textn(struct prb_rows *rows, const char *text, size_t len);
void prb_row_blob(struct prb_rows *rows, const void *bytes, size_t len);

/* Say what the rows leave out (prb_db_warning): half a table beats none, but not in silence. */
void prb_rows_warn(struct prb_rows *rows, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * All stacks of this statement, of all interpreters: taken once, whichever tables ask (one
 * consistent view), with everything that any part of the statement needs (prb_rows_needs): a table
 * leaves out what it did not ask for. Borrowed until the statement ends.
 */
const struct prb_stacks *prb_rows_stacks(struct prb_rows *rows, struct prb_error *err);
/*
 * One thing more that the tables of a statement share: what make gave, asked once in a statement
 * and freed with it.  NULL: make failed, now or before.
 */
typedef void *prb_rows_make_fn(struct prb_target *target, struct prb_error *err);
void *prb_rows_shared(struct prb_rows *rows, prb_rows_make_fn *make, void (*free)(void *shared),
                      struct prb_error *err);
/* PRB_NEED_* of the whole statement. */
unsigned prb_rows_needs(const struct prb_rows *rows);

#endif
