/* Tables of what the machine says about a live target at a moment: the columns that all have. */
#ifndef PRB_TABLE_MOMENT_COLUMNS_H
#define PRB_TABLE_MOMENT_COLUMNS_H

#include "sql/table.h"
#include "table/shared/thread_columns.h"

#define PRB_MOMENT_COLUMNS                                                                         \
    {"timestamp", PRB_REAL, "s", "of this row, since the epoch"},                                  \
        {"pid", PRB_INTEGER, "id", "process, in the pid namespace of the caller"},                 \
    {                                                                                              \
        "rank", PRB_INTEGER, "id", "of the process in its job; NULL: it has none", .of_rank = true \
    }

/* A cell of now, seconds since the epoch. */
void prb_row_now(struct prb_rows *rows);
/* These three cells, of now. */
void prb_row_moment(struct prb_rows *rows);
/* A cell that is NULL when the number is below 0: not known. */
void prb_row_known(struct prb_rows *rows, double value);
/* The same of bytes, in MB. */
void prb_row_mb(struct prb_rows *rows, int64_t bytes);
/* USAGE: the target is a core or snapshot, of which the machine says nothing. */
bool prb_rows_alive(struct prb_rows *rows, struct prb_error *err);

#endif
