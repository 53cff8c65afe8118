/* gpu.utilization: gpu_metrics by the columns that queries written for the Rust project expect; ts
 * is in seconds here.  Those of other makers' GPUs stay away. */
#include "table/shared/gpus.h"
#include "table/shared/host_history.h"
#include "table/shared/moment_columns.h"

static const struct prb_column columns[] = {
    {"ts", PRB_REAL, "s", "of this row, since the epoch"},
    {"backend", PRB_TEXT, "", "who says so: nvml or amdgpu"},
    {"device_id", PRB_INTEGER, "id", "as gpu_metrics.gpu_id"},
    {"name", PRB_TEXT, "", "its model"},
    {"free_bytes", PRB_INTEGER, "bytes", "of its memory"},
    {"total_bytes", PRB_INTEGER, "bytes", "its memory"},
    {"used_bytes", PRB_INTEGER, "bytes", "of all processes"},
    {"mem_used_pct", PRB_REAL, "%", "of its memory"},
    {"gpu_util_pct", PRB_REAL, "%", "as gpu_metrics.gpu_util"},
    {"mem_controller_util_pct", PRB_REAL, "%", "as gpu_metrics.mem_util"},
    {"temperature_c", PRB_REAL, "", "degrees Celsius"},
    {"power_w", PRB_REAL, "", "watts, now"},
    {0},
};

/* What is kept, in the order in which it is put. */
enum { TS, BACKEND, ID, NAME, USED, TOTAL, BUSY, MEMORY_BUSY, TEMPERATURE, POWER };
static const char kept[] =
    "timestamp:time\nbackend:text\ngpu_id:integer\nname:text\nmemory_used_mb:real\n"
    "memory_total_mb:real\ngpu_util:real\nmem_util:real\ntemperature_c:real\npower_w:real\n";

static int64_t bytes_of(const struct prb_ring_value *value)
{
    return value->null ? -1 : (int64_t)(value->real * 1048576);
}

static void add_kept(struct prb_rows *rows, const struct prb_ring_value *values, int64_t pid)
{
    int64_t used = bytes_of(&values[USED]), total = bytes_of(&values[TOTAL]);
    bool known = used >= 0 && total > 0;
    (void)pid;
    prb_row_begin(rows);
    prb_row_kept(rows, PRB_RING_TIME, &values[TS]);
    prb_row_kept(rows, PRB_RING_TEXT, &values[BACKEND]);
    prb_row_kept(rows, PRB_RING_INTEGER, &values[ID]);
    prb_row_kept(rows, PRB_RING_TEXT, &values[NAME]);
    prb_row_int_unless(rows, known ? total - used : -1, -1);
    prb_row_int_unless(rows, total, -1);
    prb_row_int_unless(rows, used, -1);
    prb_row_known(rows, known ? 100 * (double)used / (double)total : -1);
    for (int i = BUSY; i <= POWER; i++)
        prb_row_kept(rows, PRB_RING_REAL, &values[i]);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_gpus) struct prb_gpus gpus = {0};
    double latest;
    if (!prb_rows_host_each(rows, PRB_HOST_GPUS, kept, true, add_kept, &latest, err))
        return false;
    if (!prb_rows_target(rows))
        return true;
    if (!prb_rows_alive(rows, err) || !prb_rows_gpus(rows, false, &gpus, err))
        return false;
    for (size_t i = 0; i < gpus.count; i++) {
        const struct prb_gpu *gpu = &gpus.items[i];
        int64_t used = gpu->memory_used, total = gpu->memory_total;
        bool known = used >= 0 && total > 0;
        prb_row_begin(rows);
        prb_row_now(rows);
        prb_row_text(rows, gpu->backend);
        prb_row_int(rows, gpu->index);
        prb_row_text(rows, gpu->name[0] ? gpu->name : NULL);
        prb_row_int_unless(rows, known ? total - used : -1, -1);
        prb_row_int_unless(rows, total, -1);
        prb_row_int_unless(rows, used, -1);
        prb_row_known(rows, known ? 100 * (double)used / (double)total : -1);
        prb_row_known(rows, gpu->busy);
        prb_row_known(rows, gpu->memory_busy);
        prb_row_known(rows, gpu->temperature);
        prb_row_known(rows, gpu->power);
    }
    return true;
}

const struct prb_table prb_table_gpu_utilization = {
    .schema = "gpu",
    .name = "utilization",
    .doc = "gpu_metrics under the names of other tools' queries",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
