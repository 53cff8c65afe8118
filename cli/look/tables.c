/* probing tables: the documentation of the SQL tables, from their descriptors. */
#include <string.h>

#include "cli/command.h"
#include "format/format.h"

#define NAME_MAX_ 128

enum { FORMAT };

static const struct prb_option options[] = {
    [FORMAT] = {'f', "format", "FORMAT", "table (the default), json, jsonl or csv",
                PRB_ROW_FORMATS},
    {0},
};

static bool run_tables(const struct prb_run *run, struct prb_error *err)
{
    static const char name_characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    char sql[NAME_MAX_ + 16] = "SHOW TABLES";
    if (run->argument_count) {
        const char *name = run->arguments[0];
        if (!*name || strlen(name) > NAME_MAX_ || name[strspn(name, name_characters)])
            return prb_usage(run, err, "\"%s\" is not the name of a table", name);
        snprintf(sql, sizeof sql, "DESCRIBE %s", name);
    }
    return prb_query_print(run, sql, run->options[FORMAT].text, false, err);
}

const struct prb_command prb_command_tables = {
    .name = "tables",
    .aliases = "tbl",
    .summary = "list the SQL tables, or describe one",
    .arguments = "[TABLE]",
    .arguments_max = 1,
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description = "Lists the tables with a sentence each; with a name, the table's columns: type, "
                   "unit, meaning.",
    .options = options,
    .examples = "probing tables python.backtrace  # its columns\n",
    .run = run_tables,
};
