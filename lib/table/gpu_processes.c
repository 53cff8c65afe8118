/* gpu_processes: a row for each process that uses a GPU of the machine. */
#include "table/shared/gpus.h"
#include "table/shared/host_history.h"
#include "table/shared/moment_columns.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"gpu_id", PRB_INTEGER, "id", "as in gpu_metrics"},
    {"gpu_pid", PRB_INTEGER, "id",
     "the process that uses it, in the pid namespace of the caller; NULL: not known (within a "
     "container the driver names other pids)"},
    {"memory_mb", PRB_REAL, "MB", "of the GPU; NULL: the driver does not say"},
    {"sm_util", PRB_REAL, "%", "of the GPU's time, its last samples; NULL: the driver has none"},
    PRB_RESOLUTION_COLUMN,
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_gpus) struct prb_gpus gpus = {0};
    double latest;
    if (!prb_rows_host(rows, PRB_HOST_GPU_PROCESSES, true, &latest, err))
        return false;
    if (!prb_rows_target(rows))
        return true;
    if (!prb_rows_alive(rows, err) || !prb_rows_gpus(rows, true, &gpus, err))
        return false;
    for (size_t i = 0; i < gpus.process_count; i++) {
        const struct prb_gpu_process *process = &gpus.processes[i];
        prb_row_begin(rows);
        prb_row_moment(rows);
        prb_row_int(rows, process->gpu);
        prb_row_int_unless(rows, process->pid, -1);
        prb_row_mb(rows, process->memory);
        prb_row_known(rows, process->busy);
        prb_row_raw(rows);
    }
    return true;
}

const struct prb_table prb_table_gpu_processes = {
    .schema = "main",
    .name = "gpu_processes",
    .doc = "the processes that use the machine's GPUs, as NVIDIA's driver says now",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
