/* probing gdb: gdb with our commands in it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/share/share.h"

#define FIXED 6 /* words beside those of the user */

static bool run_gdb(const struct prb_run *run, struct prb_error *err)
{
    static const char *const names[] = {"gdb/probing-gdb.py", NULL};
    char path[PATH_MAX];
    size_t at = 0, next = 0;
    PRB_AUTO_FREE const char **words = calloc(run->argument_count + FIXED, sizeof *words);
    if (!words)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!prb_share_find(names, path, err))
        return false;
    words[at++] = "gdb";
    words[at++] = "-x";
    words[at++] = path;
    if (run->argument_count && prb_word_is_pid(run->arguments[0])) {
        words[at++] = "-p";
        words[at++] = run->arguments[next++];
    }
    while (next < run->argument_count)
        words[at++] = run->arguments[next++];
    return prb_share_become(run, words, "install gdb 12 or newer (Debian, Ubuntu: apt install gdb)",
                            err);
}

const struct prb_command prb_command_gdb = {
    .name = "gdb",
    .aliases = "",
    .summary = "start gdb with commands for Python in it",
    .arguments = "[PID] [ARGUMENT]...",
    .arguments_max = PRB_WORDS_MAX,
    .program = true,
    .target = PRB_USES_NO_TARGET,
    .description =
        "Becomes gdb, attached to process PID, with py-bt, py-locals, py-tensor, `probing "
        "query` and the other commands loaded. What follows is gdb's own, options too; "
        "without PID it is all of gdb's words: a program, a core file. While gdb is "
        "attached the process stands.",
    .examples = "probing gdb 12345\n"
                "probing gdb 12345 -batch -ex py-bt  # one stack, then leave\n"
                "probing gdb /usr/bin/python3 core.12345\n",
    .run = run_gdb,
};
