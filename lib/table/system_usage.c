/* system.usage(seconds): what the process and each of its threads used meanwhile. */
#include "table/shared/host_history.h"
#include "table/shared/moment_columns.h"
#include "table/shared/usage_rows.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"scope", PRB_TEXT, "", "process or thread"},
    {"os_thread_id", PRB_INTEGER, "id", "in the pid namespace of the caller; NULL: the process"},
    {"comm", PRB_TEXT, "", "the kernel's name of it"},
    {"cpu_user_pct", PRB_REAL, "%", "of one CPU, in user mode"},
    {"cpu_sys_pct", PRB_REAL, "%", "of one CPU, in the kernel"},
    {"wait_pct", PRB_REAL, "%",
     "of the time: it could run and had no CPU, as others have them or its quota is spent"},
    {"faults", PRB_INTEGER, "count", "page faults without a disk"},
    {"majflt", PRB_INTEGER, "count", "page faults that read a disk"},
    {"vol_ctxt", PRB_INTEGER, "count", "times it gave up its CPU"},
    {"invol_ctxt", PRB_INTEGER, "count", "times its CPU was taken away"},
    {"read_mb", PRB_REAL, "MB", "read from disks, of the process"},
    {"write_mb", PRB_REAL, "MB", "written to disks, of the process"},
    {"state", PRB_TEXT, "",
     "R running, S sleeping, D waiting for the disk, T stopped, t traced, Z ended"},
    {"wchan", PRB_TEXT, "", "the kernel's function that it waits in; NULL: none, or not shown"},
    {"gil_pct", PRB_REAL, "%",
     "of the looks since the row before, ten a second: the thread held the GIL. A query that "
     "watches always looks, a collector with probing.gil=on; NULL: none did, or there is no GIL"},
    PRB_RESOLUTION_COLUMN,
    {"seconds", PRB_REAL, "s", "argument: how long to watch; 1 when not given", .hidden = true},
    {0},
};

static void add_mb(struct prb_rows *rows, int64_t before, int64_t after)
{
    bool known = before >= 0 && after >= before;
    prb_row_mb(rows, known ? after - before : -1);
}

static void add_row(struct prb_rows *rows, const struct prb_usage_count *before,
                    const struct prb_usage_count *after, double gil_pct)
{
    struct prb_usage_rate rate = prb_usage_between(before, after);
    prb_row_begin(rows);
    prb_row_moment(rows);
    prb_row_text(rows, after->tid ? "thread" : "process");
    prb_row_int_unless(rows, after->tid, 0);
    prb_row_text(rows, after->comm);
    prb_row_known(rows, rate.user);
    prb_row_known(rows, rate.system);
    prb_row_known(rows, rate.wait);
    prb_row_increase(rows, before->minor, after->minor);
    prb_row_increase(rows, before->major, after->major);
    prb_row_increase(rows, before->voluntary, after->voluntary);
    prb_row_increase(rows, before->forced, after->forced);
    add_mb(rows, before->read, after->read);
    add_mb(rows, before->written, after->written);
    prb_row_textn(rows, &after->state, 1);
    prb_row_wchan(rows, "wchan", after->tid);
    prb_row_known(rows, gil_pct);
    prb_row_raw(rows);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    double latest = 0;
    if (!prb_rows_argument(rows, "seconds")) {
        if (!prb_rows_host(rows, PRB_HOST_USAGE, false, &latest, err))
            return false;
        if (prb_rows_host_is_kept(rows, latest))
            return true;
    }
    bool switches = prb_rows_wants(rows, "vol_ctxt") || prb_rows_wants(rows, "invol_ctxt");
    unsigned what =
        (switches ? PRB_USAGE_SWITCHES : 0) | (prb_rows_wants(rows, "gil_pct") ? PRB_USAGE_GIL : 0);
    return prb_rows_usage(rows, what, add_row, err);
}

const struct prb_table prb_table_system_usage = {
    .schema = "system",
    .name = "usage",
    .doc =
        "CPU time, waiting for a CPU, faults, switches and share of the GIL of the process and its "
        "threads, which system.usage(seconds) watches as the query runs",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
