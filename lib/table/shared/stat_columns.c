/* Cells of /proc/PID/stat. */
#include "table/shared/stat_columns.h"

#include <unistd.h>

#include "base/real.h"

void prb_row_stat(struct prb_rows *rows, const struct prb_stat *stat, int number)
{
    if (number <= stat->count)
        prb_row_int(rows, stat->field[number]);
    else
        prb_row_null(rows);
}

void prb_row_stat_seconds(struct prb_rows *rows, const struct prb_stat *stat, int number)
{
    if (number <= stat->count)
        prb_row_real(rows, (double)stat->field[number] / (double)sysconf(_SC_CLK_TCK));
    else
        prb_row_null(rows);
}

/* Rounded to clock ticks, as the field is: so all readings of the clocks give the same. */
void prb_row_started(struct prb_rows *rows, const struct prb_proc *proc,
                     const struct prb_stat *stat)
{
    double ticks = (double)sysconf(_SC_CLK_TCK);
    if (stat->count < PRB_STAT_STARTTIME || !prb_proc_exists(proc))
        prb_row_null(rows);
    else
        prb_row_real(rows, prb_round(prb_stat_started(stat) * ticks) / ticks);
}
