/* nccl.profiler_counters: how the NCCL plugin itself fared, when it was switched off or a communicator ended. */
#include "inject/nccl/tables.h"
#include "table/recorded/each.h"

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "since the epoch"},
    {"ts", PRB_INTEGER, "ns", "the same"},
    {"pid", PRB_INTEGER, "id", "of the process"},
    {"rank", PRB_INTEGER, "id", "of the process in its job"},
    {"coll", PRB_INTEGER, "count", "collectives that began"},
    {"p2p", PRB_INTEGER, "count", "point-to-point operations that began"},
    {"proxy_op", PRB_INTEGER, "count", "proxy operations that began"},
    {"proxy_step", PRB_INTEGER, "count", "their steps"},
    {"kernel_ch", PRB_INTEGER, "count", "channels of kernels that began"},
    {"net", PRB_INTEGER, "count", "work requests of the network that began"},
    {"rows_written", PRB_INTEGER, "count", "rows in the tables"},
    {"pool_exhausted", PRB_INTEGER, "count", "events whose place was needed before they ended"},
    {"write_errors", PRB_INTEGER, "count", "rows without room"},
    {"filtered", PRB_INTEGER, "count", "rows left out for their size (probing.nccl.min_msg_bytes)"},
    {"unmatched", PRB_INTEGER, "count", "ends and children of events that are not known any more"},
    {"live", PRB_INTEGER, "count", "places that were used"},
    {"cap", PRB_INTEGER, "count", "places that there are"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    return prb_recorded_same(rows, PRB_NCCL_COUNTERS, err);
}

const struct prb_table prb_table_nccl_profiler_counters = {
    .schema = "nccl",
    .name = "profiler_counters",
    .doc = "how the NCCL plugin itself fared, when it was switched off or a communicator ended",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
