/* What threads used while a statement watches them: see usage_rows.h. */
#include "table/shared/usage_rows.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inspect/target.h"
#include "table/shared/duration.h"
#include "table/shared/thread_columns.h"

#define SECONDS 1.0
#define NAP 0.05 /* s: how soon the end of a statement's time is noticed */

static void watch(struct prb_rows *rows, double seconds)
{
    double until = prb_clock_s() + seconds;
    for (double left; (left = until - prb_clock_s()) > 0 && prb_rows_in_time(rows);)
        nanosleep(&(struct timespec){.tv_nsec = (long)((left < NAP ? left : NAP) * 1e9)}, NULL);
}

bool prb_rows_usage(struct prb_rows *rows, bool switches, prb_usage_row_fn *row,
                    struct prb_error *err)
{
    double seconds = SECONDS;
    PRB_AUTO(prb_usage) struct prb_usage before = {0}, after = {0};
    if (!prb_rows_seconds(rows, &seconds, err) ||
        !prb_usage_read(prb_rows_target(rows)->proc, switches, NULL, &before, err))
        return false;
    struct prb_proc *proc = prb_rows_target(rows)->proc;
    watch(rows, seconds);
    if (!prb_proc_check(proc, err) || !prb_usage_read(proc, switches, NULL, &after, err))
        return false;
    prb_usage_settle(&before, &after);
    for (size_t i = 0; i < after.count; i++) {
        const struct prb_usage_count *old = prb_usage_find(&before, after.items[i].tid);
        if (old)
            row(rows, old, &after.items[i]);
    }
    return true;
}

void prb_row_increase(struct prb_rows *rows, int64_t before, int64_t after)
{
    bool known = before >= 0 && after >= before;
    prb_row_int_unless(rows, known ? after - before : -1, -1);
}

void prb_row_wchan(struct prb_rows *rows, const char *name, pid_t tid)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    char file[64];
    snprintf(file, sizeof file, "task/%d/wchan", (int)tid);
    bool known = tid && prb_rows_wants(rows, name) &&
                 prb_proc_text(prb_rows_target(rows)->proc, file, &text, NULL) && text.len &&
                 strcmp(text.data, "0") != 0;
    prb_row_text(rows, known ? text.data : NULL);
}
