/* system.crash: why the process of a crash dump crashed.  One row; of any other target none. */
#include "inspect/target.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    {"time", PRB_REAL, "s", "since the epoch"},
    {"kind", PRB_TEXT, "", "signal, exception, asked (SIGTERM) or memory"},
    {"title", PRB_TEXT, "", "what happened, in one line"},
    {"pid", PRB_INTEGER, "id", "the process"},
    {"os_thread_id", PRB_INTEGER, "id", "the thread it came to"},
    {"thread_name", PRB_TEXT, "", "threading.Thread.name, or the kernel's name of a native thread"},
    {"signal", PRB_INTEGER, "", "number of the signal"},
    {"signal_name", PRB_TEXT, "", "SIGSEGV and the like"},
    {"code", PRB_INTEGER, "", "si_code, sigaction(2)"},
    {"address", PRB_INTEGER, "addr", "of a fault"},
    {"exception", PRB_TEXT, "", "type of an exception that nobody handled"},
    {"message", PRB_TEXT, "", "its text"},
    {"rank", PRB_INTEGER, "", "of the process in its job"},
    {"local_rank", PRB_INTEGER, "", "on its machine"},
    {"world_size", PRB_INTEGER, "count", "processes of the job"},
    {"func", PRB_TEXT, "", "innermost Python function, of an exception where it was raised"},
    {"file", PRB_TEXT, "", "of that function"},
    {"lineno", PRB_INTEGER, "", "in that file"},
    {"native", PRB_TEXT, "", "innermost native function"},
    {"crash_group", PRB_TEXT, "", "equal for equal crashes"},
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_crash *crash = prb_target_crash(prb_rows_target(rows));
    (void)err;
    if (!crash)
        return true;
    prb_row_begin(rows);
    prb_row_real(rows, crash->time);
    prb_row_text(rows, crash->kind);
    prb_row_text(rows, crash->title);
    prb_row_int(rows, crash->pid);
    prb_row_int(rows, crash->tid);
    prb_row_text(rows, crash->thread);
    prb_row_int_unless(rows, crash->signal, 0);
    prb_row_text(rows, crash->signal_name);
    if (crash->signal)
        prb_row_int(rows, crash->code);
    else
        prb_row_null(rows);
    if (crash->has_address)
        prb_row_int(rows, (int64_t)crash->address);
    else
        prb_row_null(rows);
    prb_row_text(rows, crash->exception);
    prb_row_text(rows, crash->message);
    prb_row_int_unless(rows, crash->rank, -1);
    prb_row_int_unless(rows, crash->local_rank, -1);
    prb_row_int_unless(rows, crash->world_size, -1);
    prb_row_text(rows, crash->function);
    prb_row_text(rows, crash->file);
    prb_row_int_unless(rows, crash->line, 0);
    prb_row_text(rows, crash->native);
    prb_row_text(rows, crash->group);
    return true;
}

const struct prb_table prb_table_system_crash = {
    .schema = "system",
    .name = "crash",
    .doc = "why the process of a crash dump crashed",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
