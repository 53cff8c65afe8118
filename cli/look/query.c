/* probing query: SQL in, rows out, as a table, JSON, JSON lines or CSV. */
#include <string.h>
#include <unistd.h>

#include "cli/fleet/rows.h"
#include "cli/look/database.h"
#include "cli/print/out.h"
#include "format/format.h"

#define SQL_MAX (16u << 20) /* bytes read from standard input */

static bool put(void *context, const char *text, size_t length)
{
    (void)context;
    return fwrite(text, 1, length, stdout) == length;
}

static struct prb_row_writer *writer_of(const char *format, struct prb_error *err)
{
    const struct prb_row_options options = {.write = put,
                                            .turn = !format,
                                            .columns = prb_out_columns(),
                                            .color = prb_out_is_colored(),
                                            .terminal = isatty(STDOUT_FILENO)};
    return prb_row_writer_new(format ? format : "table", &options, err);
}

static bool print(struct prb_db *db, const char *sql, struct prb_row_writer *writer, bool reveal,
                  struct prb_error *err)
{
    prb_db_reveal(db, reveal);
    bool good = prb_db_query(db, sql, prb_row_write, writer, err);
    if (prb_db_warning(db)) /* a plugin that is not loaded may be why it failed */
        prb_out_note(prb_db_warning(db));
    if (!good)
        return false;
    if (prb_row_writer_end(writer, err))
        return true;
    return ferror(stdout) ? prb_out_finish(err) : false;
}

static bool print_job(const struct prb_run *run, const char *sql, const char *format, bool plan,
                      bool reveal, struct prb_error *err)
{
    PRB_AUTO(prb_row_writer) struct prb_row_writer *writer = writer_of(format, err);
    struct prb_job_rows rows = {.sql = sql, .plan = plan, .reveal = reveal, .writer = writer};
    rows.json = format && strcmp(format, "json") == 0;
    return writer && prb_run_job_rows(run, &rows, err);
}

bool prb_query_print_of(const struct prb_run *run, const char *sql, const char *format, bool ranks,
                        bool subprocesses, bool reveal, struct prb_error *err)
{
    if (prb_run_job(run) && !ranks && !subprocesses)
        return print_job(run, sql, format, false, reveal, err);
    PRB_AUTO(prb_row_writer) struct prb_row_writer *writer = writer_of(format, err);
    PRB_AUTO(prb_database) struct prb_database database = {0};
    return writer && prb_database_open(run, ranks, subprocesses, &database, err) &&
           print(database.db, sql, writer, reveal, err);
}

bool prb_query_print(const struct prb_run *run, const char *sql, const char *format, bool reveal,
                     struct prb_error *err)
{
    return prb_query_print_of(run, sql, format, false, false, reveal, err);
}

static char *read_standard_input(struct prb_error *err)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    ssize_t got = getdelim(&text, &size, '\0', stdin);
    if (got < 0 && ferror(stdin))
        prb_cli_fail(err, PRB_IO, "", "standard input cannot be read");
    else if (got < 0)
        prb_cli_fail(err, PRB_USAGE, "", "standard input is empty");
    else if ((size_t)got > SQL_MAX || (got > 0 && !feof(stdin)))
        prb_cli_fail(err, PRB_USAGE, "",
                     "standard input is not SQL: it is too long, or has a NUL byte");
    else
        return PRB_STEAL(text);
    return NULL;
}

enum { FORMAT, REVEAL, RANKS, SUBPROCESSES, PLAN };

static const struct prb_option options[] = {
    [FORMAT] =
        {'f', "format", "FORMAT",
         "table (the default), json, jsonl (one object a line), csv or vertical (a column a line)",
         PRB_ROW_FORMATS},
    [REVEAL] = {0, "reveal-secrets", NULL,
                "show what looks secret in system.environment and in variables", NULL},
    [RANKS] = PRB_OPTION_READ_RANKS,
    [SUBPROCESSES] = PRB_OPTION_READ_SUBPROCESSES,
    [PLAN] = {0, "plan", NULL, "with -t @JOB: what is fetched from each host, instead of the rows",
              NULL},
    {0},
};

/* "SELECT ... \\G", as mysql has it: without it, and true. */
static bool take_g(char *sql)
{
    size_t end = strlen(sql);
    while (end && strchr(" \t\r\n;", sql[end - 1]))
        end--;
    if (end < 2 || strncmp(sql + end - 2, "\\G", 2) != 0)
        return false;
    sql[end - 2] = '\0';
    return true;
}

static bool run_query(const struct prb_run *run, struct prb_error *err)
{
    bool input = strcmp(run->arguments[0], "-") == 0;
    PRB_AUTO_FREE char *sql = input ? read_standard_input(err) : strdup(run->arguments[0]);
    if (!sql)
        return input ? false : prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    bool vertical = take_g(sql);
    const char *format = vertical ? "vertical" : run->options[FORMAT].text;
    bool reveal = run->options[REVEAL].count;
    bool ranks = run->options[RANKS].count, subprocesses = run->options[SUBPROCESSES].count;
    if (!run->options[PLAN].count)
        return prb_query_print_of(run, sql, format, ranks, subprocesses, reveal, err);
    if (!prb_run_job(run))
        return prb_usage(run, err, "--plan is of what all ranks are asked: -t @JOB");
    return print_job(run, sql, format, true, reveal, err);
}

const struct prb_command prb_command_query = {
    .name = "query",
    .aliases = "q",
    .summary = "ask in SQL",
    .arguments = "SQL|-",
    .arguments_min = 1,
    .arguments_max = 1,
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description =
        "Runs SQL (SQLite's, read-only) on the tables of a target; `probing tables` lists them. "
        "One statement sees "
        "one moment: every table that it reads comes from the same reading. `-` reads the SQL from "
        "standard input. "
        "Beyond SQLite's there are now(), interval '5 minutes', hour(), date_trunc(), SHOW TABLES, "
        "DESCRIBE and the "
        "aggregates median, quantile and stddev. Times are seconds since the epoch, UTC.\n\n"
        "With --ranks or --subprocesses each table has the rows of all these processes, and the "
        "columns rank and pid before its own.\n\n"
        "With -t @JOB each table has the rows of all ranks of the job, and the columns rank and "
        "host "
        "behind its own. The statement is run here, as a whole: before its first row what it reads "
        "is "
        "fetched, which --plan shows. With -f json there is one object of rows and coverage; the "
        "status is 15 when not all ranks answered, and with --strict there are no rows then.\n\n"
        "SET KEY = VALUE before a statement, in the same call, changes a setting for what follows; "
        "SHOW ALL lists them.\n\n"
        "In a table NULL is empty and, on a terminal, wide columns are cut; rows that do not fit "
        "are "
        "printed a column a line, as with -f vertical or \\G at the end of the SQL. The other "
        "formats "
        "hold everything. Several "
        "statements give several tables or JSON arrays, one after the other.",
    .options = options,
    .examples = "probing 12345 query \"SELECT func, file, lineno FROM python.backtrace LIMIT 5\"\n"
                "probing 12345 query \"SET probing.repr_limit = 99; SELECT * FROM python.locals\"\n"
                "probing query --ranks \"SELECT rank, max(step) FROM training_logs GROUP BY 1\"\n"
                "probing -t @ query \"SELECT rank, count(*) FROM python.steps GROUP BY 1\"\n"
                "probing 12345 q -f csv - < report.sql  # SQL from a file, rows as CSV\n",
    .run = run_query,
};
