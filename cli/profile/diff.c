/* probing diff: what takes more time, and what less, in one profile than in another. */
#include <string.h>

#include "cli/command.h"
#include "cli/print/out.h"

enum { OUTPUT, FUNCTION, NOLINENO, FULL_FILENAMES, INVERTED };

static const struct prb_option options[] = {
    [OUTPUT] = {'o', "output", "FILE", "where to, diff.svg if not given; - is standard output",
                NULL},
    [FUNCTION] = {'F', "function", NULL, "functions by their first line, not line by line", NULL},
    [NOLINENO] = {0, "nolineno", NULL, "no line numbers", NULL},
    [FULL_FILENAMES] = {0, "full-filenames", NULL, "whole paths of files", NULL},
    [INVERTED] = {0, "inverted", NULL, "innermost frames first", NULL},
    {0},
};

PRB_DEFINE_AUTO_PTR(prb_profile, struct prb_profile, prb_profile_free)

static bool run_diff(const struct prb_run *run, struct prb_error *err)
{
    const char *path = run->options[OUTPUT].count ? run->options[OUTPUT].text : "diff.svg";
    char elsewhere[4096];
    if (!prb_profile_check_output(path, err))
        return false;
    PRB_AUTO(prb_profile)
    struct prb_profile *before = prb_profile_open(run->arguments[0], err);
    PRB_AUTO(prb_profile)
    struct prb_profile *after = before ? prb_profile_open(run->arguments[1], err) : NULL;
    if (!after)
        return false;
    char title[400];
    snprintf(title, sizeof title, "before: %.150s, after: %.150s; red is more, blue is less",
             run->arguments[0], run->arguments[1]);
    const struct prb_profile_style style = {
        .function = run->options[FUNCTION].count,
        .nolineno = run->options[NOLINENO].count,
        .full_filenames = run->options[FULL_FILENAMES].count,
        .inverted = run->options[INVERTED].count,
        .before = before,
        .title = title,
    };
    if (!prb_profile_write(after, prb_profile_format_find("flamegraph"), &style, path, elsewhere,
                           sizeof elsewhere, err))
        return false;
    if (elsewhere[0])
        return prb_cli_fail(err, PRB_IO, "move it when there is room",
                            "%s could not be written; it is in %s", path, elsewhere);
    return true;
}

const struct prb_command prb_command_diff = {
    .name = "diff",
    .aliases = "",
    .summary = "the difference between two profiles, as a flame graph",
    .arguments = "BEFORE AFTER",
    .arguments_min = 2,
    .arguments_max = 2,
    .target = PRB_USES_NO_TARGET,
    .description =
        "Compares shares, so that the profiles may be of different length. The widths are those of "
        "AFTER; a function that is only in BEFORE is counted, not drawn. Both files are profiles "
        "in "
        "the formats sqlite or collapsed.",
    .options = options,
    .examples = "probing 1234 profile -d 10 -o before.db\n"
                "probing diff before.db after.db -o diff.svg\n",
    .run = run_diff,
};
