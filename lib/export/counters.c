/* Values over time: what the program logs (training_logs), memory, GPUs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"

/* A table's columns that are values over time.  To add one: its line. */
static const struct counter {
    const char *table, *column, *name, *unit;
} counters[] = {
    {"main.memory_usage", "memory_mb", "resident memory", "MB"},
    {"main.memory_usage", "cgroup_used", "memory of the control group", "MB"},
    {"main.memory_usage", "torch_allocated", "torch: allocated", "MB"},
    {"main.memory_usage", "torch_reserved", "torch: reserved", "MB"},
    {"python.torch_trace", "allocated", "torch: allocated", "MB"},
    {"main.gpu_metrics", "gpu_util", "utilization", "%"},
    {"main.gpu_metrics", "memory_used_mb", "memory", "MB"},
    {"main.gpu_metrics", "power_w", "power", "W"},
    {"main.gpu_metrics", "temperature_c", "temperature", "C"},
};
enum { COUNTERS = sizeof counters / sizeof *counters };

/* Of one table: the columns after the time are names[], or of a GPU, which is before them. */
struct table {
    const char *names[PRB_EXPORT_COLUMNS_MAX], *units[PRB_EXPORT_COLUMNS_MAX];
    size_t count;
    bool by_gpu;
};

static bool take(struct prb_export *export, struct prb_export_process *process,
                 const struct prb_value *row, void *context)
{
    const struct table *table = context;
    int64_t time = prb_trace_ns(prb_export_real(&row[0])), gpu = prb_export_integer(&row[1]);
    /* Each process tells of the machine's GPUs: one is enough. */
    if (table->by_gpu && process != export->processes)
        return true;
    for (size_t i = 0; i < table->count; i++) {
        double value = prb_export_real(&row[2 + i]);
        char name[160];
        if (isnan(value))
            continue;
        if (table->by_gpu && gpu != INT64_MIN)
            snprintf(name, sizeof name, "GPU %d: %.120s", (int)gpu, table->names[i]);
        else
            snprintf(name, sizeof name, "%.150s", table->names[i]);
        uint32_t counter = prb_export_counter_of(export, process, name, table->units[i]);
        prb_trace_add_value(&export->trace, counter, time, value);
    }
    return !export->failed;
}

/* The values of one table that counters[] lists. */
static bool read_listed(struct prb_export *export, const char *name, struct prb_error *err)
{
    const char *columns[3 + PRB_EXPORT_COLUMNS_MAX] = {"timestamp", "gpu_id"};
    struct table table = {.by_gpu = prb_export_has(export, name, "gpu_id")};
    for (size_t i = 0; i < COUNTERS; i++)
        if (strcmp(counters[i].table, name) == 0) {
            columns[2 + table.count] = counters[i].column;
            table.names[table.count] = counters[i].name;
            table.units[table.count++] = counters[i].unit;
        }
    bool said = export->out->note[0];
    if (!prb_export_rows(export, name, columns, false, take, &table, err))
        return false;
    if (table.by_gpu && !said)
        export->out->note[0] = '\0'; /* that there is no GPU is nothing that is left out */
    return true;
}

/* ---- what the program logs ---- */

static bool is_metric(const struct prb_export_column *column)
{
    static const char *const others[] = {"time",  "timestamp",   "pid",        "rank",      "step",
                                         "epoch", "global_step", "local_step", "world_size"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(column->name, others[i]) == 0)
            return false;
    return column->number && strcmp(column->table, PRB_EXPORT_LOGS) == 0;
}

size_t prb_export_metrics(const struct prb_export *export, const char **out)
{
    size_t count = 0;
    for (size_t i = 0; i < export->column_count && count < PRB_EXPORT_COLUMNS_MAX; i++)
        if (is_metric(&export->columns[i]))
            out[count++] = export->columns[i].name;
    return count;
}

static bool read_logs(struct prb_export *export, struct prb_error *err)
{
    const char *columns[3 + PRB_EXPORT_COLUMNS_MAX] = {"time/timestamp", "gpu_id"};
    struct table table = {0};
    table.count = prb_export_metrics(export, table.names);
    for (size_t i = 0; i < table.count; i++) {
        columns[2 + i] = table.names[i];
        table.units[i] = "";
    }
    return prb_export_rows(export, PRB_EXPORT_LOGS, columns, false, take, &table, err);
}

bool prb_export_counters(struct prb_export *export, struct prb_error *err)
{
    if (!read_logs(export, err))
        return false;
    for (size_t i = 0; i < COUNTERS; i++)
        if ((!i || strcmp(counters[i].table, counters[i - 1].table) != 0) &&
            !read_listed(export, counters[i].table, err))
            return false;
    return true;
}
