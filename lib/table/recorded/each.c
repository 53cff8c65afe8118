/* Reading a ring of the probe's own for a built-in table: see each.h. */
#include "table/recorded/each.h"

#include <string.h>

#include "inspect/target.h"
#include "ring/columns.h"
#include "table/recorded/live.h"

struct passing {
    bool (*row)(void *context, const struct prb_ring_value *values);
    void *context;
};

static bool pass(void *context, const struct prb_ring_value *values, int64_t process,
                 enum prb_store_resolution resolution)
{
    const struct passing *passing = context;
    (void)process, (void)resolution;
    return passing->row(passing->context, values);
}

static void warn(struct prb_rows *rows, const char *ring, const struct prb_history_counts *counts)
{
    if (counts->ring.broken || counts->store.broken)
        prb_rows_warn(rows, "%s: %llu parts of its file are broken, and their rows are left out",
                      ring, (unsigned long long)(counts->ring.broken + counts->store.broken));
    else if (counts->store.summed && counts->raw && !prb_rows_wants(rows, "resolution"))
        prb_rows_warn(rows,
                      "%s.%s: %llu rows stand for a minute or an hour each: its column resolution "
                      "says which",
                      prb_rows_table(rows)->schema, prb_rows_table(rows)->name,
                      (unsigned long long)counts->store.summed);
    else if (counts->ring.dropped)
        prb_rows_warn(rows, "%s: %llu rows were dropped by the process: there was no room", ring,
                      (unsigned long long)counts->ring.dropped);
}

const char *prb_recorded_resolution(enum prb_store_resolution resolution)
{
    static const char *const names[] = {"raw", "minute", "hour"};
    return names[resolution];
}

bool prb_recorded_query(struct prb_rows *rows, const struct prb_history *history,
                        struct prb_history_query *query, const char *ring, prb_store_row_fn *row,
                        void *context, struct prb_error *err)
{
    struct prb_history_counts counts;
    if (!prb_history_each(history, query, row, context, &counts, err))
        return false;
    warn(rows, ring, &counts);
    return true;
}

bool prb_recorded_each_of(struct prb_rows *rows, const char *ring, const char *columns,
                          enum prb_history_fit fit, const char *time, uint64_t wanted,
                          prb_store_row_fn *row, void *context, struct prb_error *err)
{
    struct prb_store_bound bound;
    struct prb_ring_column asked[PRB_RING_COLUMNS_MAX];
    struct prb_history_query query = {.schema = "python",
                                      .name = ring,
                                      .columns = asked,
                                      .wanted = wanted,
                                      .bounds = &bound,
                                      .fit = fit};
    const struct prb_history *history = prb_recorded_history(rows);
    PRB_AUTO_FREE char *text = strdup(columns);
    if (!text)
        return prb_nomem(err);
    if (time)
        query.bound_count = prb_history_bound(prb_rows_times(rows), time, 0, &bound);
    return !history || (prb_ring_columns_parse(text, asked, &query.count, err) &&
                        prb_recorded_query(rows, history, &query, ring, row, context, err));
}

bool prb_recorded_each(struct prb_rows *rows, const char *ring, const char *columns,
                       bool (*row)(void *context, const struct prb_ring_value *values),
                       void *context, struct prb_error *err)
{
    struct passing passing = {row, context};
    return prb_recorded_each_of(rows, ring, columns, PRB_HISTORY_WHOLE, NULL, UINT64_MAX, pass,
                                &passing, err);
}

/* ---- as the table shows them ---- */

struct same {
    struct prb_rows *rows;
    const struct prb_ring_column *columns;
    size_t count;
    const struct prb_history *history;
    int64_t pid, rank; /* of the target; -1: not known */
    double latest;     /* in the first column */
};

/* Who wrote a row that does not say it: the process of the store, else the target.  -1: not known. */
static int64_t writer(const struct same *same, bool rank, int64_t process)
{
    const struct prb_store_process *stored = prb_history_process(same->history, process);
    if (stored)
        return rank ? stored->rank : stored->pid;
    return rank ? same->rank : same->pid;
}

static void put_value(const struct same *same, size_t column, const struct prb_ring_value *value,
                      int64_t process, enum prb_store_resolution resolution)
{
    bool pid = strcmp(same->columns[column].name, "pid") == 0;
    bool rank = strcmp(same->columns[column].name, "rank") == 0;
    int64_t number = value->null && (pid || rank) ? writer(same, rank, process) : -1;
    if (number >= 0)
        prb_row_int(same->rows, number);
    else if (value->null && strcmp(same->columns[column].name, "resolution") == 0)
        prb_row_text(same->rows, prb_recorded_resolution(resolution));
    else
        prb_row_recorded(same->rows, &same->columns[column], value);
}

static bool put_same(void *context, const struct prb_ring_value *values, int64_t process,
                     enum prb_store_resolution resolution)
{
    struct same *same = context;
    if (!values[0].null && values[0].real > same->latest)
        same->latest = values[0].real;
    prb_row_begin(same->rows);
    for (size_t i = 0; i < same->count; i++)
        put_value(same, i, &values[i], process, resolution);
    return true;
}

/* How a ring has a column that SQL shows so. */
static enum prb_ring_type type_of(enum prb_type type)
{
    return type == PRB_INTEGER ? PRB_RING_INTEGER
           : type == PRB_REAL  ? PRB_RING_REAL
                               : PRB_RING_TEXT;
}

static bool each_same(struct prb_rows *rows, struct prb_history_query *query, double *latest_out,
                      struct prb_error *err)
{
    struct prb_ring_column asked[PRB_RING_COLUMNS_MAX];
    const struct prb_history *history = prb_recorded_history(rows);
    struct prb_target *target = prb_rows_target(rows);
    pid_t pid = target && prb_proc_exists(target->proc) ? prb_proc_pid(target->proc) : -1;
    struct same same = {.rows = rows,
                        .columns = asked,
                        .history = history,
                        .pid = pid,
                        .rank = pid < 0 ? -1 : prb_process_rank(pid)};
    const struct prb_column *columns = prb_rows_table(rows)->columns;
    for (; columns->name && !columns->hidden && same.count < PRB_RING_COLUMNS_MAX; columns++)
        asked[same.count++] =
            (struct prb_ring_column){columns->name, "", "", type_of(columns->type)};
    struct prb_store_bound bound;
    query->bounds = &bound;
    for (size_t i = 0; i < same.count && !query->bound_count; i++)
        query->bound_count = prb_history_bound(prb_rows_times(rows), asked[i].name, i, &bound);
    query->columns = asked;
    query->count = same.count;
    query->wanted = UINT64_MAX;
    if (history && !prb_recorded_query(rows, history, query, query->name, put_same, &same, err))
        return false;
    *latest_out = same.latest;
    return true;
}

bool prb_recorded_same(struct prb_rows *rows, const char *ring, struct prb_error *err)
{
    double latest;
    struct prb_history_query query = {.schema = "python", .name = ring, .fit = PRB_HISTORY_PART};
    return each_same(rows, &query, &latest, err);
}

bool prb_recorded_of(struct prb_rows *rows, const char *schema, const char *ring, bool every,
                     double *latest_out, struct prb_error *err)
{
    struct prb_history_query query = {.schema = schema, .name = ring, .every = every};
    return each_same(rows, &query, latest_out, err);
}
