/* What NCCL's RAS service says of the job that the target is a rank of. */
#ifndef PRB_TABLE_RAS_H
#define PRB_TABLE_RAS_H

#include "comm/ras_report.h"
#include "sql/table.h"
#include "table/shared/moment_columns.h"

/*
 * Ask it.  No service, or none that may be asked: a note, and the report is empty.  Among the ranks of one query the
 * first alone asks: it tells of all.  False: err says why.
 */
bool prb_rows_ras(struct prb_rows *rows, struct prb_ras_report *out, struct prb_error *err);

/* The cells of counts, in the order of prb_ras_ops. */
#define PRB_RAS_COUNT_COLUMNS(of)                                                                  \
    {"broadcast", PRB_INTEGER, "count", of}, {"reduce", PRB_INTEGER, "count", of},                 \
        {"all_gather", PRB_INTEGER, "count", of}, {"reduce_scatter", PRB_INTEGER, "count", of},    \
    {                                                                                              \
        "all_reduce", PRB_INTEGER, "count", of                                                     \
    }
void prb_row_ras_counts(struct prb_rows *rows, const int64_t counts[PRB_RAS_OPS]);
void prb_row_ras_hash(struct prb_rows *rows, const struct prb_ras_comm *comm);

#endif
