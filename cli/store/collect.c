/* probing collect: move what this user's processes record into the store. */
#include <errno.h>
#include <string.h>

#include "base/state_folder.h"
#include "cli/command.h"
#include "cli/ends.h"
#include "cli/print/out.h"
#include "format/log_file.h"

enum { ONCE, WHILE_USED };

static const struct prb_option options[] = {
    [ONCE] = {0, "once", NULL, "move everything that waits now, and end", NULL},
    [WHILE_USED] = {0, "while-used", NULL, "end when no process has recorded for a minute", NULL},
    {0},
};

/* In the background nobody reads standard error. */
static struct prb_log_file *open_log(void)
{
    struct prb_error err = {0};
    PRB_AUTO_FREE char *folder = prb_state_folder(true, &err);
    return folder ? prb_log_file_open(folder, "collector.log", &err) : NULL;
}

static void say(void *log, const char *line)
{
    prb_out_note(line);
    prb_log_file_add(log, "process %d: %s", (int)getpid(), line);
}

static bool run_collect(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO_FD int ends = prb_take_ends();
    PRB_AUTO(prb_log_file) struct prb_log_file *log = open_log();
    const struct prb_collect_options collect = {
        .once = run->options[ONCE].count,
        .while_used = run->options[WHILE_USED].count,
        .stop_fd = ends,
        .say = say,
        .context = log,
    };
    uint64_t rows = 0;
    if (ends < 0)
        return prb_cli_fail(err, PRB_IO, "", "signals cannot be received: %s", strerror(errno));
    prb_log_file_add(log, "process %d: started", (int)getpid());
    if (!prb_collect(&collect, &rows, err)) {
        prb_log_file_add(log, "process %d: %s", (int)getpid(), err->text);
        if (err->code != PRB_BUSY)
            return false;
        puts(err->text);
        return true;
    }
    prb_log_file_add(log, "process %d: %llu rows moved to the store", (int)getpid(),
                     (unsigned long long)rows);
    printf("%llu rows moved to the store\n", (unsigned long long)rows);
    return true;
}

const struct prb_command prb_command_collect = {
    .name = "collect",
    .aliases = "",
    .summary = "keep what is recorded, also when the job has ended",
    .arguments = "",
    .target = PRB_USES_NO_TARGET,
    .description =
        "Moves the rows that this user's processes record from shared memory into the store, one "
        "SQLite file for each job, $XDG_STATE_HOME/probing/store (~/.local/state/probing/store). "
        "Queries of a live process then have the rows of the store before those of its memory, and "
        "`probing -t JOB query` answers when the job has ended: JOB is the pid of a process that "
        "wrote there, a part of its command line, the job's name, or a file of the store.\n\n"
        "It runs in the foreground until Ctrl-C or SIGTERM, and then moves what is left. There is "
        "one collector for a user on a machine: a second one says which it is, and ends. "
        "PROBING_STORE=on beside PROBING=1 starts it in the background when none runs; what it has "
        "to say stands in ~/.local/state/probing/collector.log.\n\n"
        "Once a second it samples what the machine says of these processes: system.usage, "
        "memory_usage, system.cgroup, system.network, gpu_metrics. From its environment: "
        "PROBING_CPU_SAMPLE_MS and PROBING_GPU_SAMPLE_MS (1000; 0: never); PROBING_GIL (off): "
        "on looks at who holds the GIL, for gil_pct of system.usage; PROBING_STORE_RAW (1d): "
        "older samples and calls of modules become one a minute; PROBING_STORE_MINUTES (7d): one "
        "an hour; PROBING_RETENTION_DAYS (7): older rows are removed; PROBING_STORE_MEMORY (1G): "
        "and the oldest ones beyond that. What a job sets itself (config probing.store_raw=2d, "
        "probing.cpu.sample_interval=100ms, …) holds for that job, at once.",
    .options = options,
    .examples = "probing collect &\n"
                "probing collect --once  # what is there now, of ended processes, too\n"
                "probing -t train.py query \"SELECT max(step) FROM training_logs\"\n",
    .run = run_collect,
};
