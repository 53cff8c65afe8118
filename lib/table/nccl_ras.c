/* nccl.ras: the communicators of the job, as NCCL's own RAS service tells of them now. */
#include <string.h>

#include "table/shared/ras.h"

#define LIST_MAX 4000 /* bytes of a list of ranks */

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"nccl_version", PRB_TEXT, "", "of NCCL"},
    {"comm_hash", PRB_INTEGER, "id",
     "of the communicator, as in nccl.coll_perf; NULL: the service names it only when something "
     "is wrong with it (before NCCL 2.28.7)"},
    {"n_ranks", PRB_INTEGER, "count", "that it has"},
    {"missing_ranks", PRB_INTEGER, "count", "of which nothing was told"},
    {"missing", PRB_TEXT, "", "these ranks: 3,5"},
    {"status", PRB_TEXT, "", "INIT, RUNNING, FINALIZE, ABORT: the gravest of its ranks"},
    {"errors", PRB_TEXT, "",
     "OK, or INCOMPLETE (ranks do not answer), ERROR, MISMATCH (ranks differ, which they may for a "
     "moment)"},
    {"behind", PRB_TEXT, "", "ranks that have launched fewer operations than others; NULL: none"},
    PRB_RAS_COUNT_COLUMNS("launched by the rank that is farthest; NULL: not told"),
    {"raw", PRB_TEXT, "", "all that the service said of it"},
    {0},
};

struct list {
    char text[LIST_MAX + 32];
    size_t len;
};

static void add(struct list *list, int64_t rank)
{
    if (list->len < LIST_MAX)
        list->len += (size_t)snprintf(list->text + list->len, 24, "%s%lld", list->len ? "," : "",
                                      (long long)rank);
    else if (list->text[list->len - 1] != '.')
        list->len += (size_t)snprintf(list->text + list->len, 8, ",...");
}

/* The ranks from first on that belong to the communicator; the index behind them. */
static size_t list_ranks(const struct prb_ras_report *report, size_t comm, size_t first,
                         struct list *missing, struct list *behind)
{
    size_t i = first;
    for (; i < report->rank_count && report->ranks[i].comm == comm; i++) {
        const struct prb_ras_rank *rank = &report->ranks[i];
        if (rank->missing)
            add(missing, rank->rank);
        else if (prb_ras_behind(report, rank) > 0)
            add(behind, rank->rank);
    }
    return i;
}

static void put_raw(struct prb_rows *rows, const struct prb_ras_comm *comm)
{
    char *text =
        comm->json && prb_rows_wants(rows, "raw") ? json_dumps(comm->json, JSON_COMPACT) : NULL;
    prb_row_text(rows, text ? text : comm->text);
    free(text);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_ras_report) struct prb_ras_report report = {0};
    if (!prb_rows_ras(rows, &report, err))
        return false;
    for (size_t i = 0, rank = 0; i < report.comm_count; i++) {
        const struct prb_ras_comm *comm = &report.comms[i];
        struct list missing = {0}, behind = {0};
        rank = list_ranks(&report, i, rank, &missing, &behind);
        prb_row_begin(rows);
        prb_row_moment(rows);
        prb_row_text(rows, report.version);
        prb_row_ras_hash(rows, comm);
        prb_row_int_unless(rows, comm->size, -1);
        prb_row_int_unless(rows, comm->missing, -1);
        prb_row_text(rows, missing.len ? missing.text : NULL);
        prb_row_text(rows, comm->status);
        prb_row_text(rows, comm->errors);
        prb_row_text(rows, behind.len ? behind.text : NULL);
        prb_row_ras_counts(rows, comm->counts);
        put_raw(rows, comm);
    }
    return true;
}

const struct prb_table prb_table_nccl_ras = {
    .schema = "nccl",
    .name = "ras",
    .doc = "the communicators of the job, on all machines, as NCCL's own RAS service tells of them "
           "now",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
