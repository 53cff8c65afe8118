/* system.threads: a row for each kernel thread, Python's and native ones. */
#include <string.h>

#include "inspect/target.h"
#include "table/shared/stat_columns.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    {"pid", PRB_INTEGER, "id", "process, in the pid namespace of the caller"},
    {"os_thread_id", PRB_INTEGER, "id", "in the pid namespace of the caller"},
    {"inner_thread_id", PRB_INTEGER, "id", "what gettid() says inside its container"},
    {"name", PRB_TEXT, "", "the kernel's name of it"},
    {"state", PRB_TEXT, "",
     "R running, S sleeping, D waiting for the disk, T stopped, t traced, Z ended"},
    {"cpu_user", PRB_REAL, "s", "CPU time in user mode"},
    {"cpu_system", PRB_REAL, "s", "CPU time in the kernel"},
    {"started", PRB_REAL, "s", "since the epoch"},
    {"priority", PRB_INTEGER, "", "the kernel's"},
    {"nice", PRB_INTEGER, "", "-20 … 19"},
    {"processor", PRB_INTEGER, "id", "the CPU on which it ran last"},
    {"system_call", PRB_INTEGER, "id", "number of the system call that it waits in; NULL: it runs"},
    {"voluntary_switches", PRB_INTEGER, "count", "times it gave up its CPU"},
    {"involuntary_switches", PRB_INTEGER, "count", "times its CPU was taken away"},
    {0},
};

static void add_system_call(struct prb_rows *rows, struct prb_proc *proc, pid_t tid)
{
    struct prb_syscall call;
    bool known = prb_rows_wants(rows, "system_call") && prb_proc_syscall(proc, tid, &call, NULL) &&
                 !call.running && call.number >= 0;
    prb_row_int_unless(rows, known ? call.number : -1, -1);
}

static void add_switches(struct prb_rows *rows, struct prb_proc *proc, pid_t tid)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    char name[64];
    int64_t count;
    if (!prb_rows_wants(rows, "voluntary_switches") &&
        !prb_rows_wants(rows, "involuntary_switches"))
        return;
    snprintf(name, sizeof name, "task/%d/status", (int)tid);
    if (!prb_proc_text(proc, name, &text, NULL))
        return;
    prb_row_int_unless(
        rows, prb_status_number(&text, "voluntary_ctxt_switches", &count) ? count : -1, -1);
    prb_row_int_unless(
        rows, prb_status_number(&text, "nonvoluntary_ctxt_switches", &count) ? count : -1, -1);
}

static void add_numbers(struct prb_rows *rows, const struct prb_target *target, pid_t tid)
{
    char name[64];
    struct prb_stat stat = {0};
    snprintf(name, sizeof name, "task/%d/stat", (int)tid);
    prb_stat_read(target->proc, name, &stat);
    prb_row_stat_seconds(rows, &stat, PRB_STAT_UTIME);
    prb_row_stat_seconds(rows, &stat, PRB_STAT_STIME);
    prb_row_started(rows, target->proc, &stat);
    prb_row_stat(rows, &stat, PRB_STAT_PRIORITY);
    prb_row_stat(rows, &stat, PRB_STAT_NICE);
    prb_row_stat(rows, &stat, PRB_STAT_PROCESSOR);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!prb_proc_tasks(target->proc, &tasks, err))
        return false;
    for (size_t i = 0; i < tasks.count; i++) {
        const struct prb_task *task = &tasks.items[i];
        prb_row_begin(rows);
        prb_row_int(rows, target->info.pid);
        prb_row_int(rows, task->tid);
        prb_row_int_unless(rows, task->inner_tid, 0);
        prb_row_text(rows, task->comm[0] ? task->comm : NULL);
        if (task->state)
            prb_row_textn(rows, &task->state, 1);
        else
            prb_row_null(rows);
        add_numbers(rows, target, task->tid);
        add_system_call(rows, target->proc, task->tid);
        add_switches(rows, target->proc, task->tid);
    }
    return true;
}

const struct prb_table prb_table_system_threads = {
    .schema = "system",
    .name = "threads",
    .doc = "the kernel's threads of the process, with and without Python",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
