/* Tables whose old rows become one a minute, and one an hour: samples, and calls of modules. */
#include "collect/parts.h"
#include "training/trace.h"

/* Steps, collectives and what the user labels stay; so do the few phases of a step. */
static bool is_no_module(const struct prb_ring_value *values)
{
    return PRB_TRACE_STAGE(values[PRB_TRACE_PLACE].integer) != PRB_TRACE_FORWARD;
}

static int64_t with_weight(int64_t place, int64_t weight)
{
    return prb_trace_place(PRB_TRACE_STAGE(place), (unsigned)PRB_TRACE_RECOMPUTE(place),
                           (unsigned)PRB_TRACE_ASYNC(place), (unsigned)PRB_TRACE_DEPTH(place),
                           weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX);
}

static int64_t take_weight(struct prb_ring_value *values)
{
    int64_t place = values[PRB_TRACE_PLACE].integer, weight = PRB_TRACE_WEIGHT(place);
    values[PRB_TRACE_PLACE].integer = with_weight(place, 0);
    return weight ? weight : 1;
}

static void put_weight(struct prb_ring_value *values, int64_t weight)
{
    values[PRB_TRACE_PLACE].integer = with_weight(values[PRB_TRACE_PLACE].integer, weight);
}

const struct prb_store_rule prb_collect_rules[] = {
    {.schema = PRB_HOST_SCHEMA,
     .name = PRB_HOST_USAGE,
     .time = "timestamp",
     .keys = "scope os_thread_id comm",
     .sums = "faults majflt vol_ctxt invol_ctxt read_mb write_mb watched_ns",
     .lasts = "user_ns sys_ns"},
    {.schema = PRB_HOST_SCHEMA,
     .name = PRB_HOST_MEMORY,
     .time = "timestamp",
     .lasts = "peak cgroup_limit oom_kills"},
    {.schema = PRB_HOST_SCHEMA,
     .name = PRB_HOST_CGROUP,
     .time = "timestamp",
     .keys = "path version limited_by",
     .lasts = "memory_limit oom_kills cpus throttled_ms throttled_periods"},
    {.schema = PRB_HOST_SCHEMA,
     .name = PRB_HOST_NETWORK,
     .time = "timestamp",
     .keys = "interface kind",
     .lasts = "rx_bytes tx_bytes rx_packets tx_packets rx_errors tx_errors"},
    {.schema = PRB_HOST_SCHEMA,
     .name = PRB_HOST_GPUS,
     .time = "timestamp",
     .keys = "gpu_id uuid name backend",
     .lasts = "memory_total_mb energy_j ecc_errors xid nvlink_rx_mb nvlink_tx_mb"},
    {.schema = PRB_HOST_SCHEMA,
     .name = PRB_HOST_GPU_PROCESSES,
     .time = "timestamp",
     .keys = "gpu_id gpu_pid"},
    {.schema = PRB_HOST_SCHEMA,
     .name = PRB_HOST_STACKS,
     .time = "timestamp",
     .keys = "os_thread_id thread_name state stack",
     .sums = "samples"},
    {.schema = "python",
     .name = PRB_TRACE_RING,
     .time = "begin",
     .keys = "object label place thread",
     .lasts = "step order",
     .stays = is_no_module,
     .take_weight = take_weight,
     .put_weight = put_weight},
};
const size_t prb_collect_rule_count = sizeof prb_collect_rules / sizeof *prb_collect_rules;
