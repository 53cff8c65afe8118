/* Cells of /proc/PID/stat that several tables have. */
#ifndef PRB_TABLE_STAT_COLUMNS_H
#define PRB_TABLE_STAT_COLUMNS_H

#include "proc/stat.h"
#include "sql/table.h"

/* A cell of a field by its number: as it is, or from clock ticks to seconds. */
void prb_row_stat(struct prb_rows *rows, const struct prb_stat *stat, int number);
void prb_row_stat_seconds(struct prb_rows *rows, const struct prb_stat *stat, int number);

/* A cell of when it was started, seconds since the epoch; NULL for a core or snapshot. */
void prb_row_started(struct prb_rows *rows, const struct prb_proc *proc,
                     const struct prb_stat *stat);

#endif
