/* nccl.proxy_ops: what NCCL's proxy sent or received for a collective, and what it waited for. */
#include "inject/nccl/tables.h"
#include "table/recorded/each.h"
#include "table/shared/nccl_columns.h"

static const struct prb_column columns[] = {
    PRB_NCCL_COLUMNS,
    {"coll_func", PRB_TEXT, "", "of the collective; NULL: not known"},
    {"seq", PRB_INTEGER, "", "of the collective; NULL: not known, or point to point"},
    {"channel_id", PRB_INTEGER, "id", "the channel"},
    {"peer", PRB_INTEGER, "id", "the other rank"},
    {"is_send", PRB_INTEGER, "", "1: sent, 0: received"},
    {"n_steps", PRB_INTEGER, "count", "steps that it was to take"},
    {"trans_bytes", PRB_INTEGER, "bytes", "that went over the network"},
    {"duration_ns", PRB_INTEGER, "ns", "from its begin to its end"},
    {"send_gpu_wait_ns", PRB_INTEGER, "ns", "sender: until the GPU had the data ready"},
    {"send_peer_wait_ns", PRB_INTEGER, "ns",
     "sender: until the receiver was ready (NCCL 2.27 and later)"},
    {"send_wait_ns", PRB_INTEGER, "ns", "sender: until the network had sent"},
    {"recv_wait_ns", PRB_INTEGER, "ns", "receiver: until the data came"},
    {"recv_flush_wait_ns", PRB_INTEGER, "ns", "receiver: until the data was visible to the GPU"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    return prb_recorded_same(rows, PRB_NCCL_PROXIES, err);
}

const struct prb_table prb_table_nccl_proxy_ops = {
    .schema = "nccl",
    .name = "proxy_ops",
    .doc = "what NCCL's proxy sent or received for a collective, and what it waited for",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
