/* What help, man page, completion and JSON share. */
#ifndef PRB_CLI_HELP_H
#define PRB_CLI_HELP_H

#include "cli/command.h"

/* Exit statuses with their meanings, one a call; *at begins with 0.  False after the last. */
bool prb_exit_status_next(size_t *at, int *status_out, const char **meaning_out);

/* "-f, --format FORMAT" */
void prb_option_usage(const struct prb_option *option, char *text, size_t size);
/* What stands before the command in its usage line: "probing TARGET". */
const char *prb_command_usage(const struct prb_command *command);

/* All of it as JSON, on standard output (json.c). */
void prb_help_json(void);

#endif
