/* probing debug: what earlier generations offered there; printing the stack is what this release
 * has of it. */
#include "command.h"

enum { DUMP, PAUSE, ADDRESS };

static const struct prb_option options[] = {
    [DUMP] = {'d', "dump", NULL, "print the stacks, as backtrace does", NULL},
    [PAUSE] = {'p', "pause", NULL, "pause and wait for a debugger (comes with a later release)",
               NULL},
    [ADDRESS] = {'a', "address", "ADDR", "where the debugger connects (comes with a later release)",
                 NULL},
    {0},
};

static bool run_debug(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_stack_options plain = {0};
    if (run->options[PAUSE].count || run->options[ADDRESS].count)
        return prb_cli_fail(err, PRB_UNSUPPORTED, "`debug --dump` and `backtrace` print the stacks",
                            "debug --pause and --address come with a later release");
    if (!run->options[DUMP].count)
        return prb_usage(run, err, "debug needs an option: --dump");
    return prb_backtrace(run, &plain, err);
}

const struct prb_command prb_command_debug = {
    .name = "debug",
    .aliases = "dbg d",
    .summary = "print the stacks (--dump)",
    .arguments = "",
    .target = PRB_USES_TARGET,
    .description = "`debug --dump` is `backtrace` under its older name.",
    .options = options,
    .examples = "probing 12345 d -d  # the stacks\n",
    .run = run_debug,
};
