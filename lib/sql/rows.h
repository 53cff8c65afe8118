/*
 * The rows of one table in one statement, as the fill function made them: the cells of the columns
 * that the statement uses in one array, texts in one buffer.  Serves all cursors of the statement
 * that ask the same table with the same arguments.
 */
#ifndef PRB_SQL_ROWS_H
#define PRB_SQL_ROWS_H

#include "base/buf.h"
#include "sql/table.h"

#define PRB_ARGUMENTS_MAX 4
#define PRB_LOOKUPS_MAX 4 /* columns by which rows are looked up at once */
#define PRB_ORDERS_MAX 8  /* different sets of such columns */
/* Bytes of cells and texts of one table in one statement. */
#define PRB_ROWS_BYTES_MAX ((size_t)1 << 30)

struct prb_cell {
    enum prb_type type;
    uint32_t length; /* of a text or blob, bytes */
    union {
        int64_t integer;
        double real;
        size_t text; /* offset in texts */
    };
};

/* The rows in the order of some integer columns, made when they are first looked up. */
struct prb_order {
    size_t columns[PRB_LOOKUPS_MAX], count;
    uint32_t *rows;
};

struct prb_argument {
    bool given;
    struct prb_value value; /* text is owned */
};

struct prb_rows {
    struct prb_db *db;
    const struct prb_table *table;
    size_t visible;        /* columns without the hidden ones */
    size_t argument_count; /* hidden columns that are arguments, behind these */
    size_t columns;        /* all */
    uint64_t wanted; /* as SQLite reports it: a bit for each column, the last for all from 63 on */
    int16_t *slots;  /* for each column: its cell in a row, or -1: it has none */
    size_t stored;   /* cells of a row */
    struct prb_argument
        arguments[PRB_ARGUMENTS_MAX]; /* of the columns that are hidden, in their order */
    struct prb_times times;
    struct prb_cell *cells; /* stored × count */
    size_t count, cell_count, cell_cap;
    size_t next_column; /* of the row being made */
    struct prb_buf texts;
    uint32_t *repeats; /* how many rows each stands for; NULL: each for one */
    size_t repeat_cap;
    size_t number; /* among those of the table with other arguments, from 0 on */
    struct prb_order orders[PRB_ORDERS_MAX];
    size_t order_count;
    bool failed; /* out of memory, or over the cap */
    struct prb_rows *next;
};

struct prb_rows *prb_rows_new(struct prb_db *db, const struct prb_table *table, uint64_t wanted);
void prb_rows_free(struct prb_rows *rows);
/* The row stands for count equal ones, at least 1. */
void prb_rows_repeat(struct prb_rows *rows, size_t row, uint32_t count);
/* A cell of a text (made UTF-8) or of a blob, which any number of rows may have. */
struct prb_cell prb_rows_keep(struct prb_rows *rows, const char *bytes, size_t len, bool blob);
/* n rows more, all NULL, for whoever writes their cells by slots.  *cells_out: of the first one.
 * False: rows->failed. */
bool prb_rows_extend(struct prb_rows *rows, size_t n, struct prb_cell **cells_out);
/* After the fill function: complete the last row.  NOMEM when something did not fit. */
bool prb_rows_finish(struct prb_rows *rows, struct prb_error *err);
/* Of a column that is no argument. */
struct prb_value prb_rows_value(const struct prb_rows *rows, size_t row, size_t column);
/* Rows next … end - 1 of order, or of the table itself where order is NULL. */
struct prb_row_range {
    const uint32_t *order;
    size_t next, end;
};
/* The rows whose columns, at most PRB_LOOKUPS_MAX, are these integers (lookup.c).  False: out of
 * memory, or there are too many orders. */
bool prb_rows_find(struct prb_rows *rows, const size_t *columns, const int64_t *values,
                   size_t count, struct prb_row_range *out);
/* Index of a column of the descriptor, or -1. */
int prb_table_column(const struct prb_table *table, const char *name);
/* "INTEGER", "REAL", "TEXT", "BLOB"; "ANY" for columns of several types. */
const char *prb_type_name(enum prb_type type);
size_t prb_table_visible(const struct prb_table *table);
/* Hidden columns that are arguments: they follow the visible ones. */
size_t prb_table_arguments(const struct prb_table *table);
/* Whether a mask as SQLite's colUsed has the column. */
static inline bool prb_column_in(uint64_t wanted, size_t column)
{
    return wanted >> (column < 63 ? column : 63) & 1;
}
bool prb_value_equal(const struct prb_value *a, const struct prb_value *b);
bool prb_arguments_equal(const struct prb_argument a[PRB_ARGUMENTS_MAX],
                         const struct prb_argument b[PRB_ARGUMENTS_MAX]);
/* A copy that owns its text (free it). */
bool prb_value_copy(const struct prb_value *value, struct prb_value *out);

#endif
