/* gpu_metrics: a row for each GPU of the machine, as its driver says now. */
#include "table/shared/gpus.h"
#include "table/shared/host_history.h"
#include "table/shared/moment_columns.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"gpu_id", PRB_INTEGER, "id", "as the driver counts them, whatever CUDA_VISIBLE_DEVICES says"},
    {"uuid", PRB_TEXT, "", "of the device"},
    {"name", PRB_TEXT, "", "its model"},
    {"backend", PRB_TEXT, "", "who says so: nvml or amdgpu"},
    {"gpu_util", PRB_REAL, "%",
     "of the last second or so: a kernel ran, however few of the GPU's units it used"},
    {"mem_util", PRB_REAL, "%", "its memory was read or written"},
    {"memory_used_mb", PRB_REAL, "MB", "of all processes"},
    {"memory_total_mb", PRB_REAL, "MB", "that it has"},
    {"temperature_c", PRB_REAL, "", "degrees Celsius"},
    {"power_w", PRB_REAL, "", "watts, now"},
    {"energy_j", PRB_REAL, "", "joules since the driver was loaded"},
    {"sm_clock_mhz", PRB_INTEGER, "", "of its units, now"},
    {"mem_clock_mhz", PRB_INTEGER, "", "of its memory, now"},
    {"throttle", PRB_TEXT, "", "what lowers its clocks; NULL: nothing, or not known"},
    {"ecc_errors", PRB_INTEGER, "count",
     "of memory, not corrected, since the driver was loaded; NULL: not counted"},
    {"sm_active", PRB_REAL, "%",
     "of the time since the row before in which its SMs had work, the mean of all SMs; NULL: not a "
     "collector's row, older than Hopper, or in MIG mode"},
    {"xid", PRB_INTEGER, "",
     "the last Xid error since the collector began; NULL: none seen, or not a collector's row"},
    {"nvlink_rx_mb", PRB_REAL, "MB", "received since the driver was loaded, by all links"},
    {"nvlink_tx_mb", PRB_REAL, "MB", "sent since the driver was loaded, by all links"},
    PRB_RESOLUTION_COLUMN,
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_gpus) struct prb_gpus gpus = {0};
    double latest;
    if (!prb_rows_host(rows, PRB_HOST_GPUS, true, &latest, err))
        return false;
    if (!prb_rows_target(rows))
        return true;
    if (!prb_rows_alive(rows, err) || !prb_rows_gpus(rows, false, &gpus, err))
        return false;
    for (size_t i = 0; i < gpus.count; i++) {
        const struct prb_gpu *gpu = &gpus.items[i];
        prb_row_begin(rows);
        prb_row_moment(rows);
        prb_row_int(rows, gpu->index);
        prb_row_text(rows, gpu->uuid[0] ? gpu->uuid : NULL);
        prb_row_text(rows, gpu->name[0] ? gpu->name : NULL);
        prb_row_text(rows, gpu->backend);
        prb_row_known(rows, gpu->busy);
        prb_row_known(rows, gpu->memory_busy);
        prb_row_mb(rows, gpu->memory_used);
        prb_row_mb(rows, gpu->memory_total);
        prb_row_known(rows, gpu->temperature);
        prb_row_known(rows, gpu->power);
        prb_row_known(rows, gpu->energy);
        prb_row_int_unless(rows, gpu->sm_clock, -1);
        prb_row_int_unless(rows, gpu->memory_clock, -1);
        prb_row_text(rows, gpu->throttle);
        prb_row_int_unless(rows, gpu->ecc_errors, -1);
        prb_row_known(rows, gpu->sm_active);
        prb_row_int_unless(rows, gpu->xid, -1);
        prb_row_mb(rows, gpu->nvlink_received);
        prb_row_mb(rows, gpu->nvlink_sent);
        prb_row_raw(rows);
    }
    return true;
}

const struct prb_table prb_table_gpu_metrics = {
    .schema = "main",
    .name = "gpu_metrics",
    .doc = "the machine's GPUs, as their driver says now: busy, memory, power, clocks, errors",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
