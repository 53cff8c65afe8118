/* What the collector kept of the machine's tables: see host_history.h. */
#include "table/shared/host_history.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "inspect/target.h"
#include "ring/columns.h"
#include "table/recorded/each.h"
#include "table/recorded/live.h"

#define FRESH 3.0 /* s: a row of a collector that writes one a second is no older */

void prb_row_raw(struct prb_rows *rows) { prb_row_text(rows, "raw"); }

bool prb_rows_host(struct prb_rows *rows, const char *ring, bool every, double *latest_out,
                   struct prb_error *err)
{
    return prb_recorded_of(rows, PRB_HOST_SCHEMA, ring, every, latest_out, err);
}

struct passing {
    struct prb_rows *rows;
    const struct prb_history *history;
    prb_host_row_fn *row;
    int64_t pid; /* of the target */
    double latest;
};

static bool pass(void *context, const struct prb_ring_value *values, int64_t process,
                 enum prb_store_resolution resolution)
{
    struct passing *passing = context;
    const struct prb_store_process *stored = prb_history_process(passing->history, process);
    (void)resolution;
    if (!values[0].null && values[0].real > passing->latest)
        passing->latest = values[0].real;
    passing->row(passing->rows, values, stored ? stored->pid : passing->pid);
    return true;
}

bool prb_rows_host_each(struct prb_rows *rows, const char *ring, const char *columns, bool every,
                        prb_host_row_fn *row, double *latest_out, struct prb_error *err)
{
    struct prb_ring_column asked[PRB_RING_COLUMNS_MAX];
    struct prb_target *target = prb_rows_target(rows);
    struct passing passing = {.rows = rows,
                              .history = prb_recorded_history(rows),
                              .row = row,
                              .pid = target ? prb_target_info(target)->pid : 0};
    struct prb_history_query query = {.schema = PRB_HOST_SCHEMA,
                                      .name = ring,
                                      .columns = asked,
                                      .wanted = UINT64_MAX,
                                      .every = every};
    struct prb_store_bound bound;
    PRB_AUTO_FREE char *text = strdup(columns);
    query.bounds = &bound;
    query.bound_count = prb_history_bound(prb_rows_times(rows), "ts", 0, &bound);
    *latest_out = 0;
    if (!text)
        return prb_nomem(err);
    if (!passing.history)
        return true;
    if (!prb_ring_columns_parse(text, asked, &query.count, err) ||
        !prb_recorded_query(rows, passing.history, &query, ring, pass, &passing, err))
        return false;
    *latest_out = passing.latest;
    return true;
}

bool prb_rows_host_is_kept(struct prb_rows *rows, double latest)
{
    return !prb_rows_target(rows) || fabs(prb_clock_epoch_s() - latest) < FRESH;
}

void prb_row_kept(struct prb_rows *rows, enum prb_ring_type type,
                  const struct prb_ring_value *value)
{
    const struct prb_ring_column column = {"", "", "", type};
    prb_row_recorded(rows, &column, value);
}
