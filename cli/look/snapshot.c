/* probing snapshot: save the memory that decoding a target reads, to use it later or elsewhere. */
#include <inttypes.h>

#include "cli/command.h"
#include "cli/print/out.h"

enum { NATIVE, LOCALS, STOP };

static const struct prb_option options[] = {
    [NATIVE] = {0, "native", NULL, "with registers and native stacks of all threads", NULL},
    [LOCALS] = {'l', "locals", NULL, "with what the values of local variables need", NULL},
    [STOP] = {0, "stop", NULL,
              "stop the Python threads meanwhile, so that all of it is from one moment", NULL},
    {0},
};

static bool run_snapshot(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_snapshot_options wanted = {
        .native = run->options[NATIVE].count,
        .locals = run->options[LOCALS].count,
        .stop = run->options[STOP].count,
    };
    size_t moved = 0;
    uint64_t bytes = 0;
    PRB_AUTO(prb_target) struct prb_target *target = prb_run_open(run, err);
    if (!target || !prb_snapshot_write(target, run->arguments[0], &wanted, &bytes, &moved, err))
        return false;
    prb_out_text(stdout, run->arguments[0]);
    char size[16];
    prb_out_bytes(size, sizeof size, (double)bytes);
    printf(": %s\n", size);
    if (moved)
        printf(
            "%zu threads went on while they were copied: their stacks may mix two moments (--stop "
            "keeps them still)\n",
            moved);
    return true;
}

const struct prb_command prb_command_snapshot = {
    .name = "snapshot",
    .aliases = "",
    .summary = "write what decoding touches to a small file",
    .arguments = "FILE",
    .arguments_min = 1,
    .arguments_max = 1,
    .target = PRB_USES_TARGET,
    .description =
        "Writes the memory that the other commands read, and the texts of /proc, to FILE: a core "
        "file of some megabytes "
        "that `probing -t FILE` (and gdb) opens on any machine, long after the process ended.",
    .options = options,
    .examples = "probing 12345 snapshot stuck.snap --locals --native\n"
                "probing -t stuck.snap backtrace --locals\n",
    .run = run_snapshot,
};
