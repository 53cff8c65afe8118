/* nccl.net_qp: work requests of InfiniBand that NCCL's network plugin told of. */
#include "inject/nccl/tables.h"
#include "table/recorded/each.h"
#include "table/shared/nccl_columns.h"

static const struct prb_column columns[] = {
    PRB_NCCL_COLUMNS,
    {"device", PRB_INTEGER, "id", "network device, as NCCL counts them"},
    {"qp_num", PRB_INTEGER, "id", "queue pair"},
    {"wr_id", PRB_INTEGER, "id", "of the work request"},
    {"opcode", PRB_INTEGER, "", "what it does, as libibverbs numbers it: 0 RDMA write, 2 send"},
    {"length", PRB_INTEGER, "bytes", "of its data"},
    {"peer", PRB_INTEGER, "id", "the other rank; NULL: not known"},
    {"is_send", PRB_INTEGER, "", "1: sent, 0: received; NULL: not known"},
    {"duration_ns", PRB_INTEGER, "ns", "until it was completed"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    return prb_recorded_same(rows, PRB_NCCL_QUEUES, err);
}

const struct prb_table prb_table_nccl_net_qp = {
    .schema = "nccl",
    .name = "net_qp",
    .doc = "work requests of InfiniBand, where NCCL was built to tell of them and "
           "NCCL_PROFILE_EVENT_MASK has bit 128",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
