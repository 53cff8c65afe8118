/*
 * The rows of one table in one statement, as the fill function made them: cells in one array, texts
 * in one buffer. Serves all cursors of the statement that ask the same table with the same
 * arguments.
 */
#ifndef PRB_SQL_ROWS_H
#define PRB_SQL_ROWS_H

#include "base/buf.h"
#include "sql/table.h"

#define PRB_ARGUMENTS_MAX 4
/* Bytes of cells and texts of one table in one statement. */
#define PRB_ROWS_BYTES_MAX ((size_t)1 << 30)

struct prb_cell {
    enum prb_type type;
    uint32_t length; /* of a text, bytes */
    union {
        int64_t integer;
        double real;
        size_t text; /* offset in texts */
    };
};

struct prb_argument {
    bool given;
    struct prb_value value; /* text is owned */
};

struct prb_rows {
    struct prb_db *db;
    const struct prb_table *table;
    size_t columns;  /* without the hidden ones */
    uint64_t wanted; /* a bit for each column of the descriptor */
    struct prb_argument
        arguments[PRB_ARGUMENTS_MAX]; /* of the columns that are hidden, in their order */
    struct prb_times times;
    struct prb_cell *cells; /* columns × count */
    size_t count, cell_count, cell_cap;
    struct prb_buf texts;
    uint32_t **orders; /* for each column: the rows in its order, made when first looked up */
    bool failed;       /* out of memory, or over the cap */
    struct prb_rows *next;
};

struct prb_rows *prb_rows_new(struct prb_db *db, const struct prb_table *table, uint64_t wanted);
void prb_rows_free(struct prb_rows *rows);
/* After the fill function: complete the last row.  NOMEM when something did not fit. */
bool prb_rows_finish(struct prb_rows *rows, struct prb_error *err);
/* Of a visible column. */
struct prb_value prb_rows_value(const struct prb_rows *rows, size_t row, size_t column);
/* Rows next … end - 1 of order, or of the table itself where order is NULL. */
struct prb_row_range {
    const uint32_t *order;
    size_t next, end;
};
/* The rows whose column is this integer (lookup.c).  False: out of memory. */
bool prb_rows_find(struct prb_rows *rows, size_t column, int64_t value, struct prb_row_range *out);
/* Index of a column of the descriptor, or -1. */
int prb_table_column(const struct prb_table *table, const char *name);
/* "INTEGER", "REAL", "TEXT", "BLOB"; "ANY" for columns of several types. */
const char *prb_type_name(enum prb_type type);
size_t prb_table_visible(const struct prb_table *table);
bool prb_value_equal(const struct prb_value *a, const struct prb_value *b);
/* A copy that owns its text (free it). */
bool prb_value_copy(const struct prb_value *value, struct prb_value *out);

#endif
