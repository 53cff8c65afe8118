/*
 * Tables of what the machine says of a process: what the collector kept of them (store/host.h), in
 * the store and in rings that it writes beside the process's own.
 */
#ifndef PRB_TABLE_HOST_HISTORY_H
#define PRB_TABLE_HOST_HISTORY_H

#include "ring/ring.h"
#include "sql/table.h"
#include "store/host.h"

/* The last column of these tables that is not an argument; and its cell for a row of now. */
#define PRB_RESOLUTION_COLUMN                                                                      \
    {"resolution", PRB_TEXT, "",                                                                   \
     "raw: one sample; minute, hour: means of all in it, as older rows are kept"}
void prb_row_raw(struct prb_rows *rows);

/*
 * Append what is kept in a ring of that name, by the table's own columns.  every: of all processes of
 * the job, for what is the machine's.  *latest_out: the time of the newest row, 0: there is none.
 */
bool prb_rows_host(struct prb_rows *rows, const char *ring, bool every, double *latest_out,
                   struct prb_error *err);

/* The same by columns of one's own ("name:type" lines, the time first): a call for each row. */
typedef void prb_host_row_fn(struct prb_rows *rows, const struct prb_ring_value *values,
                             int64_t pid);
bool prb_rows_host_each(struct prb_rows *rows, const char *ring, const char *columns, bool every,
                        prb_host_row_fn *row, double *latest_out, struct prb_error *err);

/* Whether a collector keeps rows of the target now, so that a table need not watch it itself; or
 * there is no target, and only what is kept. */
bool prb_rows_host_is_kept(struct prb_rows *rows, double latest);

/* Cells of a kept value. */
void prb_row_kept(struct prb_rows *rows, enum prb_ring_type type,
                  const struct prb_ring_value *value);

#endif
