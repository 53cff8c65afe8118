/* memory_usage: one row, how much memory the process has now, and what it may have. */
#include "host/cgroup.h"
#include "host/memory.h"
#include "inspect/target.h"
#include "table/shared/moment_columns.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"memory_mb", PRB_REAL, "MB", "resident now (RSS): anon, file and shared"},
    {"anon", PRB_REAL, "MB", "its own: heaps, stacks, what was written of private files"},
    {"file", PRB_REAL, "MB", "of mapped files, libraries among them"},
    {"shared", PRB_REAL, "MB", "of shared memory, as DataLoader's workers use it"},
    {"swap", PRB_REAL, "MB", "swapped out"},
    {"peak", PRB_REAL, "MB", "the most that was resident at a time"},
    {"pss", PRB_REAL, "MB",
     "shared pages divided by the processes that have them; read only where a statement names it: "
     "the kernel holds the lock of the maps for some 10 ms"},
    {"uss", PRB_REAL, "MB", "without shared pages; read as pss is"},
    {"cgroup_used", PRB_REAL, "MB",
     "what the control group with the tightest limit uses, all its processes and files"},
    {"cgroup_limit", PRB_REAL, "MB", "its limit; NULL: there is none"},
    {"oom_kills", PRB_INTEGER, "count", "processes of its own group that the kernel ended"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    struct prb_memory_usage usage;
    struct prb_cgroup group;
    bool share = prb_rows_wants(rows, "pss") || prb_rows_wants(rows, "uss");
    if (!prb_rows_alive(rows, err) || !prb_memory_usage_read(target->proc, share, &usage, err))
        return false;
    prb_row_begin(rows);
    prb_row_moment(rows);
    prb_row_mb(rows, usage.resident);
    prb_row_mb(rows, usage.anon);
    prb_row_mb(rows, usage.file);
    prb_row_mb(rows, usage.shared);
    prb_row_mb(rows, usage.swap);
    prb_row_mb(rows, usage.peak);
    prb_row_mb(rows, usage.proportional);
    prb_row_mb(rows, usage.unique);
    bool wanted = prb_rows_wants(rows, "cgroup_used") || prb_rows_wants(rows, "cgroup_limit") ||
                  prb_rows_wants(rows, "oom_kills");
    if (!wanted || !prb_cgroup_read(target->proc, &group, NULL))
        return true;
    prb_row_mb(rows, group.memory_used);
    prb_row_mb(rows, group.memory_limit);
    prb_row_int_unless(rows, group.oom_kills, -1);
    return true;
}

const struct prb_table prb_table_memory_usage = {
    .schema = "main",
    .name = "memory_usage",
    .doc = "how much memory the process has now, and what its control group allows",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
