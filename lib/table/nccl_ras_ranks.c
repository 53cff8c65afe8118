/* nccl.ras_ranks: the ranks of the job's communicators, as NCCL's own RAS service tells of them now. */
#include "table/shared/ras.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"comm_hash", PRB_INTEGER, "id", "of the communicator, as in nccl.coll_perf"},
    {"comm_rank", PRB_INTEGER, "id", "the rank in the communicator"},
    {"host", PRB_TEXT, "", "address of its machine"},
    {"rank_pid", PRB_INTEGER, "id", "its process, as that itself sees it"},
    {"cuda_dev", PRB_INTEGER, "id", "its GPU, as the process counts them"},
    {"nvml_dev", PRB_INTEGER, "id", "the same, as gpu_metrics.gpu_id counts them"},
    {"status", PRB_TEXT, "",
     "INIT, RUNNING, FINALIZE, ABORT; of one that is missing NOCOMM (it knows no such "
     "communicator), UNRESPONSIVE, DEAD"},
    {"error", PRB_TEXT, "", "that NCCL had there; NULL: none"},
    PRB_RAS_COUNT_COLUMNS("that it has launched; NULL: not told"),
    {"behind", PRB_INTEGER, "count",
     "operations that it has launched fewer than the rank that is farthest; NULL: not told"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_ras_report) struct prb_ras_report report = {0};
    if (!prb_rows_ras(rows, &report, err))
        return false;
    for (size_t i = 0; i < report.rank_count; i++) {
        const struct prb_ras_rank *rank = &report.ranks[i];
        prb_row_begin(rows);
        prb_row_moment(rows);
        prb_row_ras_hash(rows, &report.comms[rank->comm]);
        prb_row_int_unless(rows, rank->rank, -1);
        prb_row_text(rows, rank->host);
        prb_row_int_unless(rows, rank->pid, -1);
        prb_row_int_unless(rows, rank->cuda_device, -1);
        prb_row_int_unless(rows, rank->nvml_device, -1);
        prb_row_text(rows, rank->status);
        prb_row_text(rows, rank->error);
        prb_row_ras_counts(rows, rank->counts);
        prb_row_int_unless(rows, prb_ras_behind(&report, rank), -1);
    }
    return true;
}

const struct prb_table prb_table_nccl_ras_ranks = {
    .schema = "nccl",
    .name = "ras_ranks",
    .doc = "the ranks of the job's communicators, on all machines, as NCCL's own RAS service tells "
           "of them now (before NCCL 2.28.7 those alone that differ from others)",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
