/* What threads used while a statement watches them: see usage_rows.h. */
#include "table/shared/usage_rows.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inspect/gil_watch.h"
#include "table/shared/duration.h"
#include "table/shared/thread_columns.h"

#define SECONDS 1.0
#define NAP 0.05 /* s: how soon the end of a statement's time is noticed */

/* gil: NULL: it is not looked at. */
static void watch(struct prb_rows *rows, double seconds, struct prb_gil_watch *gil)
{
    double until = prb_clock_s() + seconds, next_left = seconds;
    for (double left; (left = until - prb_clock_s()) > 0 && prb_rows_in_time(rows);) {
        if (gil && left <= next_left) {
            prb_gil_watch_look(gil);
            next_left = left - PRB_GIL_LOOK;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)((left < NAP ? left : NAP) * 1e9)}, NULL);
    }
}

bool prb_rows_usage(struct prb_rows *rows, unsigned what, prb_usage_row_fn *row,
                    struct prb_error *err)
{
    const bool switches = what & PRB_USAGE_SWITCHES;
    double seconds = SECONDS;
    PRB_AUTO(prb_gil_shares) struct prb_gil_shares shares = {0};
    PRB_AUTO(prb_usage) struct prb_usage before = {0}, after = {0};
    if (!prb_rows_seconds(rows, &seconds, err) ||
        !prb_usage_read(prb_rows_target(rows)->proc, switches, NULL, &before, err))
        return false;
    struct prb_proc *proc = prb_rows_target(rows)->proc;
    PRB_AUTO(prb_gil_watch)
    struct prb_gil_watch *gil =
        what & PRB_USAGE_GIL ? prb_gil_watch_new(prb_rows_target(rows), NULL) : NULL;
    watch(rows, seconds, gil);
    if (!prb_proc_check(proc, err) || !prb_usage_read(proc, switches, NULL, &after, err))
        return false;
    if (gil && !prb_gil_watch_take(gil, &shares, err))
        return false;
    prb_usage_settle(&before, &after);
    for (size_t i = 0; i < after.count; i++) {
        pid_t tid = after.items[i].tid;
        const struct prb_usage_count *old = prb_usage_find(&before, tid);
        if (old)
            row(rows, old, &after.items[i], tid ? prb_gil_share_of(&shares, tid) : -1);
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
