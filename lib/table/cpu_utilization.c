/* cpu.utilization(seconds): system.usage by the columns that queries written for the Rust project
 * expect; ts is in seconds here. */
#include "base/real.h"
#include "inspect/target.h"
#include "table/shared/host_history.h"
#include "table/shared/moment_columns.h"
#include "table/shared/usage_rows.h"

static const struct prb_column columns[] = {
    {"ts", PRB_REAL, "s", "of this row, since the epoch"},
    {"scope", PRB_TEXT, "", "process or thread"},
    {"platform", PRB_TEXT, "", "linux"},
    {"tid", PRB_INTEGER, "id", "the thread; of the process its pid"},
    {"comm", PRB_TEXT, "", "the kernel's name of it"},
    {"wall_ns", PRB_INTEGER, "ns", "how long it was watched"},
    {"delta_user_ns", PRB_INTEGER, "ns", "CPU time in user mode meanwhile"},
    {"delta_sys_ns", PRB_INTEGER, "ns", "CPU time in the kernel meanwhile"},
    {"delta_total_ns", PRB_INTEGER, "ns", "both"},
    {"cpu_user_pct", PRB_REAL, "%", "of one CPU, in user mode"},
    {"cpu_sys_pct", PRB_REAL, "%", "of one CPU, in the kernel"},
    {"cpu_total_pct", PRB_REAL, "%", "both"},
    {"cum_user_ns", PRB_INTEGER, "ns", "CPU time in user mode since it began"},
    {"cum_sys_ns", PRB_INTEGER, "ns", "CPU time in the kernel since it began"},
    {"rss_kb", PRB_INTEGER, "KiB", "resident memory, of the process"},
    {"thread_count", PRB_INTEGER, "count", "threads, of the process"},
    {"delta_vol_ctxt", PRB_INTEGER, "count", "times it gave up its CPU meanwhile"},
    {"delta_invol_ctxt", PRB_INTEGER, "count", "times its CPU was taken away meanwhile"},
    {"state", PRB_TEXT, "", "as in system.usage"},
    {"wchan", PRB_TEXT, "", "the kernel's function that it waits in"},
    {"seconds", PRB_REAL, "s", "argument: how long to watch; 1 when not given", .hidden = true},
    {0},
};

static int64_t ns(double seconds) { return (int64_t)prb_round(seconds * 1e9); }

static void add_row(struct prb_rows *rows, const struct prb_usage_count *before,
                    const struct prb_usage_count *after, double gil_pct)
{
    (void)gil_pct;
    struct prb_usage_rate rate = prb_usage_between(before, after);
    const struct prb_target *target = prb_rows_target(rows);
    int64_t user = ns(rate.user * rate.seconds / 100),
            system = ns(rate.system * rate.seconds / 100);
    prb_row_begin(rows);
    prb_row_now(rows);
    prb_row_text(rows, after->tid ? "thread" : "process");
    prb_row_text(rows, "linux");
    prb_row_int(rows, after->tid ? after->tid : target->info.pid);
    prb_row_text(rows, after->comm);
    prb_row_int(rows, ns(rate.seconds));
    prb_row_int(rows, user);
    prb_row_int(rows, system);
    prb_row_int(rows, user + system);
    prb_row_known(rows, rate.user);
    prb_row_known(rows, rate.system);
    prb_row_known(rows, rate.user + rate.system);
    prb_row_int(rows, ns(after->user));
    prb_row_int(rows, ns(after->system));
    prb_row_int_unless(rows, after->tid ? -1 : after->resident / 1024, -1);
    prb_row_int_unless(rows, after->tid ? -1 : after->threads, -1);
    prb_row_increase(rows, before->voluntary, after->voluntary);
    prb_row_increase(rows, before->forced, after->forced);
    prb_row_textn(rows, &after->state, 1);
    prb_row_wchan(rows, "wchan", after->tid);
}

/* What is kept, in the order in which it is put. */
enum {
    TS,
    SCOPE,
    TID,
    COMM,
    WATCHED,
    USER_PCT,
    SYS_PCT,
    USER,
    SYS,
    RSS,
    THREADS,
    VOLUNTARY,
    FORCED,
    STATE,
};
static const char kept[] =
    "timestamp:time\nscope:text\nos_thread_id:integer\ncomm:text\nwatched_ns:integer\n"
    "cpu_user_pct:real\ncpu_sys_pct:real\nuser_ns:integer\nsys_ns:integer\nrss_kb:integer\n"
    "thread_count:integer\nvol_ctxt:integer\ninvol_ctxt:integer\nstate:text\n";

static double real_of(const struct prb_ring_value *value) { return value->null ? -1 : value->real; }

static void add_kept(struct prb_rows *rows, const struct prb_ring_value *values, int64_t pid)
{
    double user = real_of(&values[USER_PCT]), system = real_of(&values[SYS_PCT]);
    double watched = values[WATCHED].null ? 0 : (double)values[WATCHED].integer * 1e-9;
    int64_t spent[] = {ns(user * watched / 100), ns(system * watched / 100)};
    prb_row_begin(rows);
    prb_row_kept(rows, PRB_RING_TIME, &values[TS]);
    prb_row_kept(rows, PRB_RING_TEXT, &values[SCOPE]);
    prb_row_text(rows, "linux");
    prb_row_int(rows, values[TID].null ? pid : values[TID].integer);
    prb_row_kept(rows, PRB_RING_TEXT, &values[COMM]);
    prb_row_kept(rows, PRB_RING_INTEGER, &values[WATCHED]);
    prb_row_int(rows, spent[0]);
    prb_row_int(rows, spent[1]);
    prb_row_int(rows, spent[0] + spent[1]);
    prb_row_known(rows, user);
    prb_row_known(rows, system);
    prb_row_known(rows, user < 0 || system < 0 ? -1 : user + system);
    for (int i = USER; i <= FORCED; i++)
        prb_row_kept(rows, PRB_RING_INTEGER, &values[i]);
    prb_row_kept(rows, PRB_RING_TEXT, &values[STATE]);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    double latest = 0;
    if (!prb_rows_argument(rows, "seconds")) {
        if (!prb_rows_host_each(rows, PRB_HOST_USAGE, kept, false, add_kept, &latest, err))
            return false;
        if (prb_rows_host_is_kept(rows, latest))
            return true;
    }
    bool switches =
        prb_rows_wants(rows, "delta_vol_ctxt") || prb_rows_wants(rows, "delta_invol_ctxt");
    return prb_rows_usage(rows, switches ? PRB_USAGE_SWITCHES : 0, add_row, err);
}

const struct prb_table prb_table_cpu_utilization = {
    .schema = "cpu",
    .name = "utilization",
    .doc = "system.usage under the names of other tools' queries; utilization(seconds) watches as "
           "the query runs",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
