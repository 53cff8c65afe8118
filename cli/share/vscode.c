/* probing vscode: the extension for VS Code. */
#include <limits.h>
#include <string.h>

#include "cli/print/out.h"
#include "cli/share/share.h"

static bool run_vscode(const struct prb_run *run, struct prb_error *err)
{
    static const char *const names[] = {"editors/probing.vsix", NULL};
    char path[PATH_MAX];
    const char *words[] = {"code", "--install-extension", path, NULL};
    bool install = strcmp(run->arguments[0], "install") == 0;
    if (!install && strcmp(run->arguments[0], "path") != 0)
        return prb_usage_word(run, err);
    if (!prb_share_find(names, path, err))
        return prb_cli_fail(err, PRB_NOT_FOUND,
                            "`make vsix` in the source tree makes it; it needs npm",
                            "the extension was not packed with this program");
    if (install)
        return prb_share_become(run, words,
                                "on the machine that VS Code shows files of, in a terminal of VS "
                                "Code: code --install-extension \"$(probing vscode path)\"",
                                err);
    prb_out_text(stdout, path);
    fputc('\n', stdout);
    return true;
}

const struct prb_command prb_command_vscode = {
    .name = "vscode",
    .aliases = "",
    .summary = "the extension for VS Code: its path, or install it",
    .arguments = "path | install",
    .words = "path install",
    .arguments_min = 1,
    .arguments_max = 1,
    .target = PRB_USES_NO_TARGET,
    .description =
        "`path` prints where the extension's file is; `install` gives it to VS Code by its "
        "own command, `code`. The Python Debugger's own attach configuration works "
        "without it.",
    .examples = "probing vscode install\n"
                "codium --install-extension \"$(probing vscode path)\"\n",
    .run = run_vscode,
};
