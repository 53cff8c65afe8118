/* probing completion: the scripts for bash, zsh and fish, and the candidates that they ask for. */
#include <string.h>

#include "cli/help/candidates.h"
#include "complete_scripts.h"

static bool run_completion(const struct prb_run *run, struct prb_error *err)
{
    static const struct {
        const char *name, *script;
    } shells[] = {
        [PRB_SHELL_BASH] = {"bash", prb_complete_bash},
        [PRB_SHELL_ZSH] = {"zsh", prb_complete_zsh},
        [PRB_SHELL_FISH] = {"fish", prb_complete_fish},
    };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(run->arguments[0], shells[i].name) != 0)
            continue;
        if (run->argument_count > 1)
            return prb_candidates_print((enum prb_shell)i, run->arguments + 1,
                                        run->argument_count - 1, err);
        fputs(shells[i].script, stdout);
        return true;
    }
    return prb_usage_word(run, err);
}

const struct prb_command prb_command_completion = {
    .name = "completion",
    .aliases = "",
    .summary = "print the completion script of a shell",
    .arguments = "bash|zsh|fish [WORD]...",
    .words = "bash zsh fish",
    .arguments_min = 1,
    .arguments_max = PRB_WORDS_MAX,
    .program = true,
    .target = PRB_USES_NO_TARGET,
    .description = "The scripts are installed with the program; print one for a shell that "
                   "searches elsewhere. Tab then offers commands, options and their arguments, "
                   "the Python processes, and the threads, tables and settings of the target. "
                   "With WORDs, it prints what the last of them may become: the scripts ask so.",
    .examples = "source <(probing completion bash)\n",
    .run = run_completion,
};
