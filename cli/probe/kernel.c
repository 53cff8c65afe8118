/* probing kernel: a kernel of Jupyter that evaluates in another process. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/print/out.h"
#include "cli/python.h"

/* $JUPYTER_DATA_DIR, else the user's folder; then kernels/probing.  The caller frees it. */
static char *folder(struct prb_error *err)
{
    const char *data = getenv("JUPYTER_DATA_DIR"), *home = getenv("HOME");
    char *path = NULL;
    if (!(data && *data) && !(home && *home == '/'))
        prb_cli_fail(err, PRB_USAGE, "", "neither JUPYTER_DATA_DIR nor HOME is set");
    else if (asprintf(&path, "%s%s/kernels/probing", data && *data ? data : home,
                      data && *data ? "" : "/.local/share/jupyter") < 0)
        prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    return path;
}

static bool make_folders(char *path, struct prb_error *err)
{
    for (char *slash = path; slash;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = '\0';
        bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        int sys = errno;
        if (slash)
            *slash = '/';
        if (!made)
            return prb_cli_fail(err, PRB_IO, "", "%s cannot be made: %s", path, strerror(sys));
    }
    return true;
}

static bool write_spec(const char *path, const char *python, struct prb_error *err)
{
    PRB_AUTO_FREE char *name = NULL;
    if (asprintf(&name, "%s/kernel.json", path) < 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    PRB_AUTO(file) FILE *file = fopen(name, "we");
    if (!file)
        return prb_cli_fail(err, PRB_IO, "", "%s cannot be written: %s", name, strerror(errno));
    fputs("{\"argv\": [", file);
    prb_out_json_text(file, python, strlen(python));
    fputs(", \"-m\", \"probing_c.kernel\", \"-f\", \"{connection_file}\"], \"display_name\": "
          "\"Probing (another process)\", \"language\": \"python\", \"interrupt_mode\": "
          "\"signal\"}\n",
          file);
    if (fflush(file) != 0)
        return prb_cli_fail(err, PRB_IO, "", "%s cannot be written: %s", name, strerror(errno));
    fputs("the kernel \"Probing (another process)\" is in ", stdout);
    prb_out_text(stdout, path);
    fputs(", for ", stdout);
    prb_out_text(stdout, python);
    fputc('\n', stdout);
    return true;
}

static bool run_kernel(const struct prb_run *run, struct prb_error *err)
{
    char python[PATH_MAX];
    if (strcmp(run->arguments[0], "install") != 0)
        return prb_usage_word(run, err);
    PRB_AUTO_FREE char *path = folder(err);
    return path && prb_find_python(python, err) && make_folders(path, err) &&
           write_spec(path, python, err);
}

const struct prb_command prb_command_kernel = {
    .name = "kernel",
    .aliases = "",
    .summary = "a Jupyter kernel that runs code in another process",
    .arguments = "install",
    .words = "install",
    .arguments_min = 1,
    .arguments_max = 1,
    .target = PRB_USES_NO_TARGET,
    .description = "Writes a kernel's description below $JUPYTER_DATA_DIR (else "
                   "~/.local/share/jupyter), for the "
                   "python found on PATH, which needs the packages probing and ipykernel. In a "
                   "notebook with it, "
                   "%attach PID chooses a process; cells then run there, %query SQL asks its "
                   "tables, %bt shows "
                   "its stacks. Nothing of Jupyter is needed in that process.\n\n"
                   "In any other notebook: %load_ext probing, then %%probing PID above a cell, and "
                   "%probing_query PID SQL, which gives a data frame.",
    .examples = "probing kernel install",
    .run = run_kernel,
};
