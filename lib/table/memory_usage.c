/* memory_usage: how much memory the process has now, and what it may have; and what is kept of it. */
#include "table/shared/host_history.h"
#include "table/shared/memory_columns.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    PRB_MEMORY_COLUMNS,
    PRB_RESOLUTION_COLUMN,
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    double latest;
    if (!prb_rows_host(rows, PRB_HOST_MEMORY, false, &latest, err))
        return false;
    if (!prb_rows_target(rows))
        return true;
    if (!prb_row_memory(rows, err))
        return false;
    prb_row_raw(rows);
    return true;
}

const struct prb_table prb_table_memory_usage = {
    .schema = "main",
    .name = "memory_usage",
    .doc = "how much memory the process has now, and what its control group allows; before it, "
           "what the collector kept",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
