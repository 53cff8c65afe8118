/* probing gdb-script: where the commands for gdb are. */
#include "cli/print/out.h"
#include "cli/share/share.h"

#include <limits.h>

static bool run_gdb_script(const struct prb_run *run, struct prb_error *err)
{
    static const char *const names[] = {"gdb/probing-gdb.py", NULL};
    char path[PATH_MAX];
    (void)run;
    if (!prb_share_find(names, path, err))
        return false;
    prb_out_text(stdout, path);
    fputc('\n', stdout);
    return true;
}

const struct prb_command prb_command_gdb_script = {
    .name = "gdb-script",
    .aliases = "",
    .summary = "print the path of the commands for gdb",
    .arguments = "",
    .target = PRB_USES_NO_TARGET,
    .description = "The absolute path of the script that gives gdb py-bt, py-locals, py-tensor, "
                   "`probing query` and more, for `source` in gdb or in ~/.gdbinit.",
    .examples = "echo \"source $(probing gdb-script)\" >>~/.gdbinit\n",
    .run = run_gdb_script,
};
