/* probing query: SQL in, rows out, as a table, JSON, JSON lines or CSV. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/print/grid.h"
#include "cli/print/out.h"

#define SQL_MAX (16u << 20) /* bytes read from standard input */
#define HELD_MAX                                                                                   \
    (1u << 20) /* bytes of output kept back, so that a query that fails early prints nothing */

struct printer;

struct format {
    const char *name;
    bool (*begin)(struct printer *printer, size_t columns, const char *const *names);
    bool (*row)(struct printer *printer, size_t columns, const char *const *names,
                const struct prb_value *row);
    void (*end)(struct printer *printer); /* of one statement's rows */
};

struct printer {
    const struct format *format;
    FILE *out; /* held back in text */
    char *text;
    size_t size;
    struct prb_grid *grid;   /* table */
    size_t statements, rows; /* rows: of this statement */
    bool open, failed;
};

static void release(struct printer *printer)
{
    if (printer->out)
        fclose(printer->out);
    if (printer->grid)
        prb_grid_free(printer->grid);
    free(printer->text);
}
PRB_DEFINE_AUTO(printer, struct printer, release)

static bool spill(struct printer *printer)
{
    fflush(printer->out);
    if (printer->size) {
        fwrite(printer->text, 1, printer->size, stdout);
        rewind(printer->out);
    }
    return !ferror(stdout);
}

static void print_hex(FILE *out, const struct prb_value *value)
{
    for (size_t i = 0; i < value->length; i++)
        fprintf(out, "%02x", (unsigned char)value->text[i]);
}

/* ---- table ---- */

static bool table_begin(struct printer *printer, size_t columns, const char *const *names)
{
    if (printer->statements)
        fputc('\n', printer->out);
    printer->grid = prb_grid_new(names, columns);
    return printer->grid != NULL;
}

static bool table_cell(struct printer *printer, const struct prb_value *value)
{
    if (value->type == PRB_NULL_VALUE)
        return prb_grid_add(printer->grid, NULL, 0, false);
    if (value->type == PRB_INTEGER)
        return prb_grid_addf(printer->grid, "%" PRId64, value->integer);
    if (value->type == PRB_TEXT)
        return prb_grid_add(printer->grid, value->text, value->length, false);
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return false;
    if (value->type == PRB_BLOB)
        print_hex(memory, value);
    else if (!prb_out_real(memory, value->real))
        fprintf(memory, "%f", value->real);
    return fclose(memory) == 0 && prb_grid_add(printer->grid, text, size, value->type == PRB_REAL);
}

static bool table_row(struct printer *printer, size_t columns, const char *const *names,
                      const struct prb_value *row)
{
    (void)names;
    for (size_t i = 0; i < columns; i++)
        if (!table_cell(printer, &row[i]))
            return false;
    return true;
}

static void table_end(struct printer *printer)
{
    prb_grid_print(printer->grid, printer->out, prb_out_columns());
    prb_out_style(printer->out, PRB_STYLE_SUBTLE);
    fprintf(printer->out, "(%zu row%s)", printer->rows, printer->rows == 1 ? "" : "s");
    prb_out_style(printer->out, PRB_STYLE_PLAIN);
    fputc('\n', printer->out);
    prb_grid_free(PRB_STEAL(printer->grid));
}

/* ---- JSON and JSON lines ---- */

static void json_value(FILE *out, const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        fprintf(out, "%" PRId64, value->integer);
    else if (value->type == PRB_TEXT)
        prb_out_json_text(out, value->text, value->length);
    else if (value->type == PRB_BLOB)
        fputc('"', out), print_hex(out, value), fputc('"', out);
    else if (value->type != PRB_REAL || !prb_out_real(out, value->real))
        fputs("null", out);
}

static void json_object(FILE *out, size_t columns, const char *const *names,
                        const struct prb_value *row)
{
    fputc('{', out);
    for (size_t i = 0; i < columns; i++) {
        fputs(i ? ", " : "", out);
        prb_out_json_text(out, names[i], strlen(names[i]));
        fputs(": ", out);
        json_value(out, &row[i]);
    }
    fputc('}', out);
}

static bool json_begin(struct printer *printer, size_t columns, const char *const *names)
{
    (void)columns, (void)names;
    fputc('[', printer->out);
    return true;
}

static bool json_row(struct printer *printer, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    fputs(printer->rows ? ",\n " : "", printer->out);
    json_object(printer->out, columns, names, row);
    return true;
}

static void json_end(struct printer *printer) { fputs("]\n", printer->out); }

static bool lines_begin(struct printer *printer, size_t columns, const char *const *names)
{
    (void)printer, (void)columns, (void)names;
    return true;
}

static bool lines_row(struct printer *printer, size_t columns, const char *const *names,
                      const struct prb_value *row)
{
    json_object(printer->out, columns, names, row);
    fputc('\n', printer->out);
    return true;
}

static void lines_end(struct printer *printer) { (void)printer; }

/* ---- CSV: RFC 4180, lines ended by a line feed; NULL is empty, the empty text "" ---- */

/* A file gets the bytes as they are; a terminal does not, also one that tells no width. */
static void csv_bytes(FILE *out, const char *text, size_t length)
{
    if (isatty(STDOUT_FILENO))
        prb_out_cut(out, text, length, 0);
    else
        fwrite(text, 1, length, out);
}

static void csv_text(FILE *out, const char *text, size_t length)
{
    bool quote = length == 0;
    for (size_t i = 0; i < length && !quote; i++)
        quote = text[i] && strchr(",\"\r\n", text[i]);
    if (quote)
        fputc('"', out);
    for (size_t at = 0; at < length;) {
        const char *mark = memchr(text + at, '"', length - at);
        size_t n = mark ? (size_t)(mark - text) + 1 - at : length - at;
        csv_bytes(out, text + at, n);
        fputs(mark ? "\"" : "", out);
        at += n;
    }
    if (quote)
        fputc('"', out);
}

static void csv_value(FILE *out, const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        fprintf(out, "%" PRId64, value->integer);
    else if (value->type == PRB_REAL && !prb_out_real(out, value->real))
        fprintf(out, "%f", value->real);
    else if (value->type == PRB_TEXT)
        csv_text(out, value->text, value->length);
    else if (value->type == PRB_BLOB)
        print_hex(out, value);
}

static bool csv_begin(struct printer *printer, size_t columns, const char *const *names)
{
    if (printer->statements)
        fputc('\n', printer->out);
    for (size_t i = 0; i < columns; i++) {
        fputs(i ? "," : "", printer->out);
        csv_text(printer->out, names[i], strlen(names[i]));
    }
    fputc('\n', printer->out);
    return true;
}

static bool csv_row(struct printer *printer, size_t columns, const char *const *names,
                    const struct prb_value *row)
{
    (void)names;
    for (size_t i = 0; i < columns; i++) {
        fputs(i ? "," : "", printer->out);
        csv_value(printer->out, &row[i]);
    }
    fputc('\n', printer->out);
    return true;
}

/* The first is the default.  To add one: a line here, its name in PRB_QUERY_FORMATS. */
static const struct format formats[] = {
    {"table", table_begin, table_row, table_end},
    {"json", json_begin, json_row, json_end},
    {"jsonl", lines_begin, lines_row, lines_end},
    {"csv", csv_begin, csv_row, lines_end},
};

static void end_statement(struct printer *printer)
{
    if (!printer->open)
        return;
    printer->format->end(printer);
    printer->open = false;
    printer->statements++;
}

static bool take_row(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    struct printer *printer = context;
    bool ok = true;
    if (!row) {
        end_statement(printer);
        printer->open = true;
        printer->rows = 0;
        ok = printer->format->begin(printer, columns, names);
    } else {
        ok = printer->format->row(printer, columns, names, row);
        printer->rows++;
    }
    if (ok && ftello(printer->out) > (off_t)HELD_MAX)
        ok = spill(printer);
    printer->failed = !ok;
    return ok;
}

PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

PRB_DEFINE_AUTO_PTR(prb_profile, struct prb_profile, prb_profile_free)

/* A process that ended may have left tables; a file may be a profile. */
static struct prb_db *open_db(const struct prb_run *run, struct prb_target **target,
                              struct prb_profile **profile, struct prb_error *err)
{
    const char *ended = prb_run_ended(run), *saved = prb_run_profile(run);
    if (saved)
        return (*profile = prb_profile_open(saved, err)) ? prb_db_open_profile(*profile, err)
                                                         : NULL;
    if (ended)
        return prb_db_open_ended(ended, err);
    bool wanted = prb_run_has_target(run) || run->command->target == PRB_USES_TARGET;
    if (wanted && !(*target = prb_run_open(run, err)))
        return NULL;
    return prb_db_open(*target, err);
}

bool prb_query_print(const struct prb_run *run, const char *sql, const char *format, bool reveal,
                     struct prb_error *err)
{
    PRB_AUTO(printer) struct printer printer = {.format = &formats[0]};
    for (size_t i = 0; format && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, format) == 0)
            printer.format = &formats[i];
    printer.out = open_memstream(&printer.text, &printer.size);
    if (!printer.out)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    PRB_AUTO(prb_target) struct prb_target *target = NULL;
    PRB_AUTO(prb_profile) struct prb_profile *profile = NULL;
    PRB_AUTO(prb_db) struct prb_db *db = open_db(run, &target, &profile, err);
    if (!db)
        return false;
    prb_db_reveal(db, reveal);
    if (!prb_db_query(db, sql, take_row, &printer, err))
        return false;
    if (prb_db_warning(db))
        prb_out_note(prb_db_warning(db));
    if (printer.failed)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    end_statement(&printer);
    return spill(&printer) || prb_out_finish(err);
}

static char *read_standard_input(struct prb_error *err)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    ssize_t got = getdelim(&text, &size, '\0', stdin);
    if (got < 0 && ferror(stdin))
        prb_cli_fail(err, PRB_IO, "", "standard input cannot be read");
    else if (got < 0)
        prb_cli_fail(err, PRB_USAGE, "", "standard input holds no SQL");
    else if ((size_t)got > SQL_MAX || (got > 0 && !feof(stdin)))
        prb_cli_fail(err, PRB_USAGE, "",
                     "standard input is no SQL text: too long, or with a NUL byte");
    else
        return PRB_STEAL(text);
    return NULL;
}

enum { FORMAT, REVEAL };

static const struct prb_option options[] = {
    [FORMAT] = {'f', "format", "FORMAT",
                "table (the default), json, jsonl (one object a line) or csv", PRB_QUERY_FORMATS},
    [REVEAL] = {0, "reveal-secrets", NULL,
                "show values of system.environment whose names look secret", NULL},
    {0},
};

static bool run_query(const struct prb_run *run, struct prb_error *err)
{
    const char *sql = run->arguments[0];
    PRB_AUTO_FREE char *text = NULL;
    if (strcmp(sql, "-") == 0 && !(sql = text = read_standard_input(err)))
        return false;
    return prb_query_print(run, sql, run->options[FORMAT].text, run->options[REVEAL].count, err);
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
        "In a table NULL is empty and, on a terminal, wide columns are cut; the other formats hold "
        "everything. Several "
        "statements give several tables or JSON arrays, one after the other.",
    .options = options,
    .examples = "probing 12345 query \"SELECT func, file, lineno FROM python.backtrace LIMIT 5\"\n"
                "probing 12345 q -f csv - < report.sql  # SQL from a file, rows as CSV\n",
    .run = run_query,
};
