/* nccl.coll_perf: collectives and point-to-point operations that the NCCL plugin saw (probing.nccl). */
#include "inject/nccl/tables.h"
#include "table/recorded/each.h"
#include "table/shared/nccl_columns.h"

static const struct prb_column columns[] = {
    PRB_NCCL_COLUMNS,
    {"n_ranks", PRB_INTEGER, "count", "of the communicator"},
    {"coll_func", PRB_TEXT, "", "AllReduce, Send and the like"},
    {"seq", PRB_INTEGER, "", "of the collective in its communicator; NULL: point to point"},
    {"is_p2p", PRB_INTEGER, "", "1: point to point"},
    {"peer", PRB_INTEGER, "id", "the other rank of a point to point"},
    {"count", PRB_INTEGER, "count", "elements"},
    {"msg_size_bytes", PRB_INTEGER, "bytes", "count times the size of the type"},
    {"dtype", PRB_TEXT, "", "as NCCL names it"},
    {"algo", PRB_TEXT, "", "RING, TREE and the like; NULL: NCCL does not say"},
    {"proto", PRB_TEXT, "", "LL, LL128, SIMPLE"},
    {"n_channels", PRB_INTEGER, "count", "that it runs on"},
    {"exec_time_ns", PRB_INTEGER, "ns", "how long it ran, by timing_source"},
    {"enqueue_time_ns", PRB_INTEGER, "ns", "that the call took on the CPU; NULL: it never ended"},
    {"timing_source", PRB_TEXT, "",
     "kernel_gpu (the clock of the GPU), kernel_ch (CPU clock), proxy, else enqueue"},
    {"algobw_gbps", PRB_REAL, "", "msg_size_bytes by exec_time_ns, GB/s"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    return prb_recorded_same(rows, PRB_NCCL_COLLS, err);
}

const struct prb_table prb_table_nccl_coll_perf = {
    .schema = "nccl",
    .name = "coll_perf",
    .doc = "collectives and point-to-point operations that the NCCL plugin saw (probing.nccl)",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
