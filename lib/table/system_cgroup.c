/* system.cgroup: one row, what the control group of the process allows and does. */
#include "host/cgroup.h"
#include "inspect/target.h"
#include "table/shared/host_history.h"
#include "table/shared/moment_columns.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"path", PRB_TEXT, "", "its group, below the mount of the memory controller"},
    {"version", PRB_INTEGER, "", "of control groups: 1 or 2"},
    {"memory_used", PRB_INTEGER, "bytes", "of the group with the tightest limit, else its own"},
    {"memory_limit", PRB_INTEGER, "bytes",
     "the tightest of its own group and those above it; NULL: none"},
    {"limited_by", PRB_TEXT, "", "the group with that limit"},
    {"oom_kills", PRB_INTEGER, "count", "processes of its own group that the kernel ended"},
    {"cpus", PRB_REAL, "ratio", "CPU time that it may use in a second (quota); NULL: no limit"},
    {"throttled_ms", PRB_REAL, "ms", "that it wanted to run and might not, since the group began"},
    {"throttled_periods", PRB_INTEGER, "count", "periods in which that happened"},
    {"pressure_cpu", PRB_REAL, "ratio",
     "part of the last 10 s in which a task waited for a CPU; NULL: version 1"},
    {"pressure_memory", PRB_REAL, "ratio", "the same for memory"},
    {"pressure_io", PRB_REAL, "ratio", "the same for disks"},
    PRB_RESOLUTION_COLUMN,
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_cgroup group;
    PRB_AUTO(prb_cgroup_mounts) struct prb_cgroup_mounts mounts = {0};
    double latest;
    if (!prb_rows_host(rows, PRB_HOST_CGROUP, false, &latest, err))
        return false;
    if (!prb_rows_target(rows))
        return true;
    if (!prb_rows_alive(rows, err) ||
        !prb_cgroup_read(prb_rows_target(rows)->proc, &mounts, NULL, &group, err))
        return false;
    prb_row_begin(rows);
    prb_row_moment(rows);
    prb_row_text(rows, group.version ? group.path : NULL);
    prb_row_int_unless(rows, group.version, 0);
    prb_row_int_unless(rows, group.memory_used, -1);
    prb_row_int_unless(rows, group.memory_limit, -1);
    prb_row_text(rows, group.limited_by[0] ? group.limited_by : NULL);
    prb_row_int_unless(rows, group.oom_kills, -1);
    prb_row_known(rows, group.cpus);
    prb_row_known(rows, group.throttled < 0 ? -1 : group.throttled * 1e3);
    prb_row_int_unless(rows, group.throttled_periods, -1);
    prb_row_known(rows, group.pressure_cpu < 0 ? -1 : group.pressure_cpu / 100);
    prb_row_known(rows, group.pressure_memory < 0 ? -1 : group.pressure_memory / 100);
    prb_row_known(rows, group.pressure_io < 0 ? -1 : group.pressure_io / 100);
    prb_row_raw(rows);
    return true;
}

const struct prb_table prb_table_system_cgroup = {
    .schema = "system",
    .name = "cgroup",
    .doc = "the control group of the process: its limits, what it uses, how long it was held back",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
