/* Filling an error of the command line: command.h. */
#include <stdarg.h>
#include <string.h>

#include "cli/command.h"

bool prb_cli_fail(struct prb_error *err, enum prb_code code, const char *remedy, const char *format,
                  ...)
{
    va_list arguments;
    va_start(arguments, format);
    prb_fail_args(err, code, remedy, format, arguments);
    va_end(arguments);
    return false;
}

bool prb_usage(const struct prb_run *run, struct prb_error *err, const char *format, ...)
{
    char remedy[80];
    va_list arguments;
    snprintf(remedy, sizeof remedy, "`probing help %s` explains it", run->command->name);
    va_start(arguments, format);
    prb_fail_args(err, PRB_USAGE, remedy, format, arguments);
    va_end(arguments);
    return false;
}

const char *prb_listed(const char *words, char out[PRB_LISTED])
{
    size_t len = 0;
    for (; *words && len < PRB_LISTED - 2; words++) {
        if (*words == ' ')
            out[len++] = ',';
        out[len++] = *words;
    }
    out[len] = '\0';
    return out;
}

bool prb_usage_word(const struct prb_run *run, struct prb_error *err)
{
    char all[PRB_LISTED];
    return prb_usage(run, err, "%s: \"%.40s\" is not one of: %s", run->command->name,
                     run->arguments[0], prb_listed(run->command->words, all));
}

bool prb_usage_format(const struct prb_run *run, const char *format, struct prb_error *err)
{
    struct prb_file_format one;
    char names[PRB_LISTED] = "";
    for (size_t i = 0; run->command->format(i, &one); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 one.name);
    return prb_cli_fail(err, PRB_USAGE, "", "--format: \"%.40s\" is not one of: %s", format, names);
}
