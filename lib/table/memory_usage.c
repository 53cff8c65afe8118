/* memory_usage: one row, how much memory the process has now, and what it may have. */
#include "table/shared/memory_columns.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    PRB_MEMORY_COLUMNS,
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err) { return prb_row_memory(rows, err); }

const struct prb_table prb_table_memory_usage = {
    .schema = "main",
    .name = "memory_usage",
    .doc = "how much memory the process has now, and what its control group allows",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
