/*
 * Rows of SQL as a table, JSON, JSON lines or CSV (format.h).
 *
 * To add a format:
 *   1. A line in formats below, its functions above it.
 *   2. Its name in PRB_ROW_FORMATS (format.h).
 *   3. A case in tests/cli/test_query.py.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/grid.h"

/* Bytes of output that are held back, so that a query that fails early writes nothing. */
#define HELD_MAX (1u << 20)
#define DIM "\033[2m"
#define PLAIN "\033[0m"

struct format {
    const char *name;
    bool (*begin)(struct prb_row_writer *writer, size_t columns, const char *const *names);
    bool (*row)(struct prb_row_writer *writer, size_t columns, const char *const *names,
                const struct prb_value *row);
    void (*end)(struct prb_row_writer *writer); /* of one statement's rows */
};

struct prb_row_writer {
    const struct format *format;
    struct prb_row_options options;
    FILE *out; /* what is held back, in text */
    char *text;
    size_t size;
    struct prb_grid *grid;   /* table: the statement's rows that are not printed yet */
    size_t statements, rows; /* rows: of this statement */
    size_t printed;          /* table: of these rows */
    bool open;               /* a statement's rows */
    bool refused;            /* write took no more */
    bool failed;             /* out of memory */
};

static bool flush(struct prb_row_writer *writer)
{
    if (fflush(writer->out) != 0 || ferror(writer->out)) {
        writer->failed = true;
        return false;
    }
    if (writer->size) {
        writer->refused = writer->refused || !writer->options.write(writer->options.context,
                                                                    writer->text, writer->size);
        rewind(writer->out);
    }
    return !writer->refused;
}

static void print_hex(FILE *out, const struct prb_value *value)
{
    for (size_t i = 0; i < value->length; i++)
        fprintf(out, "%02x", (unsigned char)value->text[i]);
}

/* ---- table ---- */

static bool table_begin(struct prb_row_writer *writer, size_t columns, const char *const *names)
{
    if (writer->statements)
        fputc('\n', writer->out);
    writer->grid = prb_grid_new(names, columns);
    return writer->grid != NULL;
}

static bool table_text(struct prb_row_writer *writer, const char *text, size_t length)
{
    unsigned most = writer->options.cell;
    if (!most || length <= most / 4 || prb_out_width(text, length) <= most)
        return prb_grid_add(writer->grid, text, length, false);
    PRB_AUTO_FREE char *cut = prb_text_safe(text, length, most);
    return cut && prb_grid_add(writer->grid, cut, strlen(cut), false);
}

static bool table_cell(struct prb_row_writer *writer, const struct prb_value *value)
{
    if (value->type == PRB_NULL_VALUE)
        return prb_grid_adds(writer->grid, writer->options.null);
    if (value->type == PRB_INTEGER)
        return prb_grid_addf(writer->grid, "%" PRId64, value->integer);
    if (value->type == PRB_TEXT)
        return table_text(writer, value->text, value->length);
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return false;
    if (value->type == PRB_BLOB)
        print_hex(memory, value);
    else if (!prb_out_real(memory, value->real))
        fprintf(memory, "%f", value->real);
    return fclose(memory) == 0 && prb_grid_add(writer->grid, text, size, value->type == PRB_REAL);
}

static bool table_cells(struct prb_row_writer *writer, size_t columns, const struct prb_value *row)
{
    for (size_t i = 0; i < columns; i++)
        if (!table_cell(writer, &row[i]))
            return false;
    return true;
}

static void table_print(struct prb_row_writer *writer)
{
    prb_grid_print(writer->grid, writer->out, writer->options.columns, writer->options.color);
}

static bool table_row(struct prb_row_writer *writer, size_t columns, const char *const *names,
                      const struct prb_value *row)
{
    (void)names;
    if (!table_cells(writer, columns, row))
        return false;
    size_t rows = writer->rows + 1, measured = writer->options.measured;
    if (measured && (writer->printed || rows == measured)) {
        table_print(writer);
        writer->printed = rows;
    }
    return true;
}

static void print_count(struct prb_row_writer *writer)
{
    bool color = writer->options.color;
    fprintf(writer->out, "%s(%zu row%s)%s\n", color ? DIM : "", writer->rows,
            writer->rows == 1 ? "" : "s", color ? PLAIN : "");
    prb_grid_free(PRB_STEAL(writer->grid));
}

static void table_end(struct prb_row_writer *writer)
{
    if (writer->options.turn && !writer->printed &&
        !prb_grid_fits(writer->grid, writer->options.columns))
        prb_grid_print_vertical(writer->grid, 1, writer->out, writer->options.color);
    else
        table_print(writer);
    print_count(writer);
}

/* ---- vertical: a column a line, for rows wider than the screen ---- */

static bool vertical_row(struct prb_row_writer *writer, size_t columns, const char *const *names,
                         const struct prb_value *row)
{
    (void)names;
    if (!table_cells(writer, columns, row))
        return false;
    prb_grid_print_vertical(writer->grid, writer->rows + 1, writer->out, writer->options.color);
    return true;
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

static bool json_begin(struct prb_row_writer *writer, size_t columns, const char *const *names)
{
    (void)columns, (void)names;
    fputc('[', writer->out);
    return true;
}

static bool json_row(struct prb_row_writer *writer, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    fputs(writer->rows ? ",\n " : "", writer->out);
    json_object(writer->out, columns, names, row);
    return true;
}

static void json_end(struct prb_row_writer *writer) { fputs("]\n", writer->out); }

static bool lines_begin(struct prb_row_writer *writer, size_t columns, const char *const *names)
{
    (void)writer, (void)columns, (void)names;
    return true;
}

static bool lines_row(struct prb_row_writer *writer, size_t columns, const char *const *names,
                      const struct prb_value *row)
{
    json_object(writer->out, columns, names, row);
    fputc('\n', writer->out);
    return true;
}

static void lines_end(struct prb_row_writer *writer) { (void)writer; }

/* ---- CSV ---- */

/* A file gets the bytes as they are; a terminal does not, even one that reports no width. */
static void csv_bytes(struct prb_row_writer *writer, const char *text, size_t length)
{
    if (writer->options.terminal)
        prb_out_cut(writer->out, text, length, 0);
    else
        fwrite(text, 1, length, writer->out);
}

static void csv_text(struct prb_row_writer *writer, const char *text, size_t length)
{
    bool quote = length == 0;
    for (size_t i = 0; i < length && !quote; i++)
        quote = text[i] && strchr(",\"\r\n", text[i]);
    if (quote)
        fputc('"', writer->out);
    for (size_t at = 0; at < length;) {
        const char *mark = memchr(text + at, '"', length - at);
        size_t n = mark ? (size_t)(mark - text) + 1 - at : length - at;
        csv_bytes(writer, text + at, n);
        fputs(mark ? "\"" : "", writer->out);
        at += n;
    }
    if (quote)
        fputc('"', writer->out);
}

static void csv_value(struct prb_row_writer *writer, const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        fprintf(writer->out, "%" PRId64, value->integer);
    else if (value->type == PRB_REAL && !prb_out_real(writer->out, value->real))
        fprintf(writer->out, "%f", value->real);
    else if (value->type == PRB_TEXT)
        csv_text(writer, value->text, value->length);
    else if (value->type == PRB_BLOB)
        print_hex(writer->out, value);
}

static bool csv_begin(struct prb_row_writer *writer, size_t columns, const char *const *names)
{
    if (writer->statements)
        fputc('\n', writer->out);
    for (size_t i = 0; i < columns; i++) {
        fputs(i ? "," : "", writer->out);
        csv_text(writer, names[i], strlen(names[i]));
    }
    fputc('\n', writer->out);
    return true;
}

static bool csv_row(struct prb_row_writer *writer, size_t columns, const char *const *names,
                    const struct prb_value *row)
{
    (void)names;
    for (size_t i = 0; i < columns; i++) {
        fputs(i ? "," : "", writer->out);
        csv_value(writer, &row[i]);
    }
    fputc('\n', writer->out);
    return true;
}

/* ---- the writer ---- */

static const struct format formats[] = {
    {"table", table_begin, table_row, table_end},         {"json", json_begin, json_row, json_end},
    {"jsonl", lines_begin, lines_row, lines_end},         {"csv", csv_begin, csv_row, lines_end},
    {"vertical", table_begin, vertical_row, print_count},
};

void prb_row_writer_free(struct prb_row_writer *writer)
{
    if (!writer)
        return;
    if (writer->out)
        fclose(writer->out);
    prb_grid_free(writer->grid);
    free(writer->text);
    free(writer);
}
PRB_DEFINE_AUTO_PTR(prb_row_writer, struct prb_row_writer, prb_row_writer_free)

struct prb_row_writer *prb_row_writer_new(const char *format, const struct prb_row_options *options,
                                          struct prb_error *err)
{
    PRB_AUTO(prb_row_writer) struct prb_row_writer *writer = calloc(1, sizeof *writer);
    if (!writer || !(writer->out = open_memstream(&writer->text, &writer->size)))
        return PRB_NULL(prb_nomem(err));
    writer->options = *options;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, format) == 0)
            writer->format = &formats[i];
    if (!writer->format) {
        prb_fail(err, PRB_NOT_FOUND, "there is no format %.40s for rows", format);
        prb_error_remedy(err, "choose one of: " PRB_ROW_FORMATS);
        return NULL;
    }
    return PRB_STEAL(writer);
}

static void end_statement(struct prb_row_writer *writer)
{
    if (!writer->open)
        return;
    writer->format->end(writer);
    writer->open = false;
    writer->printed = 0;
    writer->statements++;
}

bool prb_row_write(void *context, size_t columns, const char *const *names,
                   const struct prb_value *row)
{
    struct prb_row_writer *writer = context;
    if (writer->failed || writer->refused)
        return false;
    if (!row) {
        end_statement(writer);
        writer->open = true;
        writer->rows = 0;
        writer->failed = !writer->format->begin(writer, columns, names);
    } else {
        writer->failed = !writer->format->row(writer, columns, names, row);
        writer->rows++;
    }
    bool full = writer->printed || ftello(writer->out) > (off_t)HELD_MAX;
    return !writer->failed && (!full || flush(writer));
}

bool prb_row_writer_end(struct prb_row_writer *writer, struct prb_error *err)
{
    if (!writer->failed && !writer->refused) {
        end_statement(writer);
        flush(writer);
    }
    if (writer->failed)
        return prb_nomem(err);
    return !writer->refused || prb_fail(err, PRB_IO, "the output does not take all rows");
}
