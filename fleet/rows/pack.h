/*
 * Rows of tables as bytes, column by column, as a rank sends them.
 *
 * A part is "PRB" and a version; the rank's note (a length and text); how many tables; then for each
 * a length of 4 bytes and its section: flags; rows; columns; how many rows each row stands for
 * (flag REPEATS); the columns.  A column is a kind, a bit for each row that is NULL (kind | NULLS),
 * and the values of the others: integers as differences, reals as they are, texts as numbers of a
 * list, anything else one by one.  Numbers are of 7 bits a byte, least first; all is little-endian.
 * Whatever comes is hostile: each length is checked against what is there.
 */
#ifndef PRB_FLEET_ROWS_PACK_H
#define PRB_FLEET_ROWS_PACK_H

#include "sql/rows.h"

/* ---- writing ---- */

/* One table of a part: columns of rows, of which only some are sent. */
struct prb_packing {
    const struct prb_rows *rows;
    const int *columns; /* of the descriptor; -1: the rank has not that column */
    size_t column_count;
    const uint32_t *chosen;  /* which rows, in which order */
    const uint32_t *repeats; /* for each of these, or NULL: 1 */
    size_t count;
};

void prb_pack_begin(struct prb_buf *out, const char *note, size_t tables);
/* packing NULL: the rank has no such table. */
bool prb_pack_table(struct prb_buf *out, const struct prb_packing *packing, struct prb_error *err);

/* ---- reading ---- */

#define PRB_PACKED_TABLES_MAX 256

struct prb_packed_table {
    const unsigned char *data; /* of its section, behind the head */
    size_t len;
    bool missing, has_repeats;
    size_t rows, columns;
};

struct prb_packed {
    const char *note; /* not NUL-terminated */
    size_t note_len;
    struct prb_packed_table tables[PRB_PACKED_TABLES_MAX];
    size_t table_count;
};

/* Where everything is.  Errors: CORRUPT. */
bool prb_packed_open(const void *data, size_t len, struct prb_packed *out, struct prb_error *err);
/* How many rows its rows stand for. */
uint64_t prb_packed_count(const struct prb_packed_table *table);
/*
 * Append the rows of a table.  columns: for each column of the section the one of rows' table that
 * it goes to, or -1.  *first_out: the first new row.  Errors: CORRUPT, NOMEM.
 */
bool prb_packed_rows(const struct prb_packed_table *table, const int *columns, size_t column_count,
                     struct prb_rows *rows, size_t *first_out, struct prb_error *err);

#endif
