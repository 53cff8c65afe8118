/*
 * Rows that the probe recorded in a ring, for the built-in table that shows them: of a live process,
 * or of the folder that an ended one left.
 */
#ifndef PRB_TABLE_RECORDED_EACH_H
#define PRB_TABLE_RECORDED_EACH_H

#include "ring/ring.h"
#include "sql/table.h"
#include "table/recorded/history.h"

/*
 * Call row for every row of a ring, oldest first; values and texts are borrowed during the call.
 * columns: as the probe makes it ("name:type" lines); a file that lacks one of them, or has it with
 * another type, has no rows here, and so has a process without that ring.  What the collector moved to the store comes first.  False: err, or row said so.
 */
bool prb_recorded_each(struct prb_rows *rows, const char *ring, const char *columns,
                       bool (*row)(void *context, const struct prb_ring_value *values),
                       void *context, struct prb_error *err);
/* The same, with the process in the store and what the row stands for.  time: the column of the table
 * that the first one of the ring is, so that a WHERE on it reads what it needs; NULL: none.  wanted:
 * a bit for each column of the ring; the others may be NULL.  fit: which rings' rows. */
bool prb_recorded_each_of(struct prb_rows *rows, const char *ring, const char *columns,
                          enum prb_history_fit fit, const char *time, uint64_t wanted,
                          prb_store_row_fn *row, void *context, struct prb_error *err);
/*
 * The rows of a ring whose columns are those of the table, by name and of their types: one that a
 * program, or a store of rows, wrote as the table shows it.  Columns that it lacks are NULL, but for pid and rank, which
 * the process gives.
 */
bool prb_recorded_same(struct prb_rows *rows, const char *ring, struct prb_error *err);
/*
 * The same of a ring and store tables of another schema, which may have columns that are not asked
 * for; a column resolution says what a row stands for.  every: of all processes in the store.
 * *latest_out: the newest time in the first column, 0: none.
 */
bool prb_recorded_of(struct prb_rows *rows, const char *schema, const char *ring, bool every,
                     double *latest_out, struct prb_error *err);

/* prb_history_each, and a note of what it left out; ring: what the note calls it. */
bool prb_recorded_query(struct prb_rows *rows, const struct prb_history *history,
                        struct prb_history_query *query, const char *ring, prb_store_row_fn *row,
                        void *context, struct prb_error *err);
/* "raw", "minute", "hour" */
const char *prb_recorded_resolution(enum prb_store_resolution resolution);

#endif
