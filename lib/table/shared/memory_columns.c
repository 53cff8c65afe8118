/* The memory of a process and of its control group, as a row. */
#include "table/shared/memory_columns.h"

#include "host/cgroup.h"
#include "host/memory.h"
#include "inspect/target.h"

bool prb_row_memory(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    struct prb_memory_usage usage;
    struct prb_cgroup group;
    PRB_AUTO(prb_cgroup_mounts) struct prb_cgroup_mounts mounts = {0};
    bool share = prb_rows_wants(rows, "pss") || prb_rows_wants(rows, "uss");
    if (!prb_rows_alive(rows, err) ||
        !prb_memory_usage_read(target->proc, share, NULL, &usage, err))
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
    bool known = wanted && prb_cgroup_read(target->proc, &mounts, NULL, &group, NULL);
    prb_row_mb(rows, known ? group.memory_used : -1);
    prb_row_mb(rows, known ? group.memory_limit : -1);
    prb_row_int_unless(rows, known ? group.oom_kills : -1, -1);
    return true;
}
