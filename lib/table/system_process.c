/* system.process: one row, the process itself. */
#include <limits.h>
#include <pwd.h>
#include <string.h>

#include "inspect/target.h"
#include "table/shared/stat_columns.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    {"pid", PRB_INTEGER, "id", "in the pid namespace of the caller"},
    {"ppid", PRB_INTEGER, "id", "its parent"},
    {"name", PRB_TEXT, "", "the kernel's name of it"},
    {"command", PRB_TEXT, "", "its arguments, joined by spaces"},
    {"executable", PRB_TEXT, "", "path as the process sees it"},
    {"cwd", PRB_TEXT, "", "working folder as the process sees it"},
    {"uid", PRB_INTEGER, "id", "user"},
    {"user", PRB_TEXT, "", "name of the user on this machine"},
    {"started", PRB_REAL, "s", "since the epoch"},
    {"threads", PRB_INTEGER, "count", "kernel threads"},
    {"rss", PRB_INTEGER, "bytes", "resident memory"},
    {"vms", PRB_INTEGER, "bytes", "address space"},
    {"cpu_user", PRB_REAL, "s", "CPU time in user mode, all threads"},
    {"cpu_system", PRB_REAL, "s", "CPU time in the kernel, all threads"},
    {"state", PRB_TEXT, "",
     "of the main thread: R running, S sleeping, D waiting for the disk, T stopped, Z ended"},
    {"source", PRB_TEXT, "", "process, core, snapshot or callback"},
    {"taken", PRB_REAL, "s",
     "since the epoch: when a core or snapshot was taken; NULL: a live process"},
    {"python", PRB_TEXT, "", "version, with t (free-threaded) and +jit"},
    {"layout", PRB_TEXT, "", "which table of offsets is used, and how it was checked"},
    {"rank", PRB_INTEGER, "id", "from its environment, as torchrun, Slurm or MPI set it",
     .of_rank = true},
    {"local_rank", PRB_INTEGER, "id", "from its environment"},
    {"world_size", PRB_INTEGER, "count", "from its environment"},
    {0},
};

static const char *const sources[] = {[PRB_TARGET_PROCESS] = "process",
                                      [PRB_TARGET_CORE] = "core",
                                      [PRB_TARGET_SNAPSHOT] = "snapshot",
                                      [PRB_TARGET_CALLBACK] = "callback"};

static void add_folder(struct prb_rows *rows, const struct prb_target *target)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)target->info.pid);
    ssize_t n = prb_proc_exists(target->proc) ? readlink(link, path, sizeof path) : -1;
    if (n > 0)
        prb_row_textn(rows, path, (size_t)n);
    else
        prb_row_null(rows);
}

static void add_user(struct prb_rows *rows, struct prb_proc *proc)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    int64_t uid;
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (!prb_proc_text(proc, "status", &text, NULL) || !prb_status_number(&text, "Uid", &uid)) {
        prb_row_null(rows);
        prb_row_null(rows);
        return;
    }
    prb_row_int(rows, uid);
    getpwuid_r((uid_t)uid, &entry, buffer, sizeof buffer, &found);
    prb_row_text(rows, found ? found->pw_name : NULL);
}

static void add_numbers(struct prb_rows *rows, const struct prb_target *target,
                        const struct prb_stat *stat)
{
    prb_row_started(rows, target->proc, stat);
    prb_row_stat(rows, stat, PRB_STAT_THREADS);
    if (stat->count >= PRB_STAT_RSS)
        prb_row_int(rows, stat->field[PRB_STAT_RSS] * sysconf(_SC_PAGESIZE));
    else
        prb_row_null(rows);
    prb_row_stat(rows, stat, PRB_STAT_VSIZE);
    prb_row_stat_seconds(rows, stat, PRB_STAT_UTIME);
    prb_row_stat_seconds(rows, stat, PRB_STAT_STIME);
    prb_row_textn(rows, &stat->state, 1);
}

static void add_ranks(struct prb_rows *rows, struct prb_proc *proc)
{
    struct prb_process ranks = {0};
    prb_process_ranks(proc, &ranks);
    prb_row_int_unless(rows, ranks.rank, -1);
    prb_row_int_unless(rows, ranks.local_rank, -1);
    prb_row_int_unless(rows, ranks.world_size, -1);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    struct prb_stat stat = {.state = '?'};
    bool known = prb_stat_read(target->proc, "stat", &stat);
    if (!known && !prb_proc_check(target->proc, err))
        return false;
    prb_row_begin(rows);
    prb_row_int(rows, target->info.pid);
    prb_row_stat(rows, &stat, PRB_STAT_PPID);
    prb_row_text(rows, known ? stat.comm : NULL);
    prb_row_text(rows, target->info.command);
    prb_row_text(rows, target->info.executable);
    add_folder(rows, target);
    add_user(rows, target->proc);
    add_numbers(rows, target, &stat);
    prb_row_text(rows, sources[target->info.kind]);
    if (target->info.time > 0)
        prb_row_real(rows, target->info.time);
    else
        prb_row_null(rows);
    prb_row_text(rows, target->info.python);
    prb_row_text(rows, target->info.layout);
    add_ranks(rows, target->proc);
    return true;
}

const struct prb_table prb_table_system_process = {
    .schema = "system",
    .name = "process",
    .doc = "the process itself: one row",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
