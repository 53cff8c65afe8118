/* Columns of a moment: see moment_columns.h. */
#include "table/shared/moment_columns.h"

#include "base/clock.h"
#include "inspect/target.h"

void prb_row_now(struct prb_rows *rows) { prb_row_real(rows, prb_clock_epoch_s()); }

void prb_row_moment(struct prb_rows *rows)
{
    pid_t pid = (pid_t)prb_target_info(prb_rows_target(rows))->pid;
    prb_row_now(rows);
    prb_row_int(rows, pid);
    prb_row_int_unless(rows, prb_process_rank(pid), -1);
}

void prb_row_known(struct prb_rows *rows, double value)
{
    if (value < 0)
        prb_row_null(rows);
    else
        prb_row_real(rows, value);
}

void prb_row_mb(struct prb_rows *rows, int64_t bytes)
{
    prb_row_known(rows, bytes < 0 ? -1 : (double)bytes / 1048576);
}

bool prb_rows_alive(struct prb_rows *rows, struct prb_error *err)
{
    return prb_target_info(prb_rows_target(rows))->kind == PRB_TARGET_PROCESS ||
           prb_fail(err, PRB_USAGE,
                    "%s.%s is of a live process: a core or snapshot does not have it",
                    prb_rows_table(rows)->schema, prb_rows_table(rows)->name);
}
