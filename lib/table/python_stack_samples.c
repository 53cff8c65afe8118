/* python.stack_samples: what the collector sampled of the target's stacks, while probing.pprof was on. */
#include "table/shared/host_history.h"
#include "table/shared/moment_columns.h"
#include "table/shared/unrecorded.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"os_thread_id", PRB_INTEGER, "id", "in the pid namespace of the collector"},
    {"thread_name", PRB_TEXT, "", "threading.Thread.name, or the kernel's"},
    {"state", PRB_TEXT, "", "gil: it had the GIL; running: without it; idle: it waited"},
    {"samples", PRB_INTEGER, "count",
     "how often it was found so since the rows before, ten a second"},
    {"stack", PRB_TEXT, "",
     "\"function (file.py:12)\" of its frames, the outermost first, \";\" between them"},
    PRB_RESOLUTION_COLUMN,
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    double latest;
    if (!prb_rows_host(rows, PRB_HOST_STACKS, false, &latest, err))
        return false;
    char command[PRB_COMMAND_MAX];
    if (latest <= 0)
        prb_rows_warn(rows,
                      "no stack was sampled: `%s config probing.pprof=on` has the collector do "
                      "that, where it may read the process's memory",
                      prb_rows_command(rows, command));
    return true;
}

const struct prb_table prb_table_python_stack_samples = {
    .schema = "python",
    .name = "stack_samples",
    .doc = "stacks of all threads, ten times a second while probing.pprof is on, as the collector "
           "keeps them",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
