/* probing.gaps: rows that a ring lost before they were in the store. */
#include "table/recorded/live.h"

static const struct prb_column columns[] = {
    {"table_name", PRB_TEXT, "", "schema and name"},
    {"pid", PRB_INTEGER, "id", "of the process that wrote the rows"},
    {"rank", PRB_INTEGER, "id", "of that process in its job; NULL: it has none"},
    {"from_time", PRB_REAL, "s",
     "of the last row before the gap, since the epoch; NULL: there is none"},
    {"to_time", PRB_REAL, "s", "when the gap was found, since the epoch"},
    {"rows_lost", PRB_INTEGER, "count", "rows that the ring overwrote"},
    {0},
};

struct filling {
    struct prb_rows *rows;
    const struct prb_history *history;
};

static void put_number(struct prb_rows *rows, bool known, int64_t number)
{
    if (known)
        prb_row_int(rows, number);
    else
        prb_row_null(rows);
}

static bool put_gap(void *context, const struct prb_store_gap *gap)
{
    const struct filling *filling = context;
    const struct prb_store_process *process = prb_history_process(filling->history, gap->process);
    if (filling->history->process && gap->process != filling->history->process)
        return true;
    prb_row_begin(filling->rows);
    prb_row_text(filling->rows, gap->table);
    put_number(filling->rows, process, process ? process->pid : 0);
    put_number(filling->rows, process && process->rank >= 0, process ? process->rank : 0);
    if (gap->from > 0)
        prb_row_real(filling->rows, gap->from);
    else
        prb_row_null(filling->rows);
    prb_row_real(filling->rows, gap->to);
    prb_row_int(filling->rows, gap->rows);
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct filling filling = {rows, prb_recorded_history(rows)};
    if (filling.history && filling.history->store)
        return prb_store_each_gap(filling.history->store, put_gap, &filling, err);
    prb_rows_warn(rows,
                  "nothing of this is in the store: `probing collect` keeps what is recorded");
    return true;
}

const struct prb_table prb_table_probing_gaps = {
    .schema = "probing",
    .name = "gaps",
    .doc = "rows of recorded tables that were lost before the collector had them",
    .columns = columns,
    .recorded = true,
    .fill = fill,
};
