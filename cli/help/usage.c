/* What help, man page and reference share: help.h. */
#include <stdio.h>
#include <string.h>

#include "cli/help/help.h"

static const char *const meanings[] = {
    [PRB_OK] = "done",
    [PRB_USAGE] = "the command line is wrong",
    [PRB_NOT_FOUND] = "no such process, file, table or thread",
    [PRB_NOT_PYTHON] = "a process, but no CPython in it",
    [PRB_PERMISSION] = "the kernel refuses",
    [PRB_UNSUPPORTED] = "an interpreter, architecture or request this release does not know",
    [PRB_GONE] = "the target ended, or became another program",
    [PRB_CORRUPT] = "the target's memory or a file contradicts itself, or is cut short",
    [PRB_QUERY] = "wrong SQL",
    [PRB_FAULT] = "an address of the target cannot be read",
    [PRB_IO] = "reading or writing a file failed",
    [PRB_NOMEM] = "out of memory",
    [PRB_TIMEOUT] = "a limit was reached",
    [PRB_PARTIAL] = "not all ranks of a job answered",
    [PRB_BUSY] = "another debugger has the target, or another thread has the GIL",
    [PRB_INTERNAL] = "a bug in Probing",
};

bool prb_exit_status_next(size_t *at, int *status_out, const char **meaning_out)
{
    static const struct {
        int status;
        const char *meaning;
    } others[] = {{1, "eval, repl: the code raised"}, {130, "eval: interrupted by Ctrl-C"}};
    const size_t codes = sizeof meanings / sizeof *meanings;
    if (*at >= codes + sizeof others / sizeof *others)
        return false;
    *status_out = *at < codes ? prb_code_exit((enum prb_code) * at) : others[*at - codes].status;
    *meaning_out = *at < codes ? meanings[*at] : others[*at - codes].meaning;
    ++*at;
    return true;
}

void prb_option_usage(const struct prb_option *option, char *text, size_t size)
{
    const char *argument = option->argument ? option->argument : "";
    bool omit = argument[0] == '[';
    char letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    if (omit)
        snprintf(text, size, "%s--%s[=%.*s]", letter, option->name, (int)strlen(argument) - 2,
                 argument + 1);
    else
        snprintf(text, size, "%s--%s%s%s", letter, option->name, *argument ? " " : "", argument);
}

const char *prb_command_usage(const struct prb_command *command)
{
    static const char *const before[] = {
        [PRB_USES_NO_TARGET] = "probing",
        [PRB_USES_JOB_IF_GIVEN] = "probing [-t @JOB]",
        [PRB_USES_TARGET_IF_GIVEN] = "probing [TARGET]",
        [PRB_USES_TARGET] = "probing TARGET",
    };
    return before[command->target];
}
