/* Filling an error of the command line: command.h. */
#include <stdarg.h>

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
