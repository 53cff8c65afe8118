/*
 * format.h: results as text: safe for a terminal, in columns, as JSON or CSV.  Every front end
 * prints with these, so that one row looks the same everywhere.
 *
 * Strings of a target are hostile.  prb_out_text() and prb_out_cut() are the only way they may
 * reach a terminal: control characters, escape sequences, direction marks and broken UTF-8 come
 * out escaped.  Conventions are those of probing.h; a FILE's errors are left for its owner to
 * check.
 */
#ifndef PROBING_FORMAT_H
#define PROBING_FORMAT_H

#include <stdio.h>

#include "probing.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- text: text.c ---- */

/* Text, escaped, on one line.  NULL: nothing. */
PRB_API void prb_out_text(FILE *out, const char *text);
/* The same for length bytes, which may hold NULs, cut to so many columns (0: not), the cut shown by
 * "…". */
PRB_API void prb_out_cut(FILE *out, const char *text, size_t length, unsigned columns);
/* Columns that prb_out_cut would take without a limit. */
PRB_API unsigned prb_out_width(const char *text, size_t length);
/* What prb_out_cut would print, as a string, which the caller frees; NULL: out of memory. */
PRB_API char *prb_text_safe(const char *text, size_t length, unsigned columns);

/* ---- JSON values: json.c ---- */

/* JSON text as it is, but for characters that could harm a terminal: they can stand in strings
 * only, and get escaped. */
PRB_API void prb_out_json(FILE *out, const char *json, size_t length);
/* A JSON string; broken UTF-8 becomes U+FFFD.  NULL is null. */
PRB_API void prb_out_json_text(FILE *out, const char *text, size_t length);
/* The shortest decimal that reads back as the same number, always with a point or exponent; false
 * (and nothing written) when it is not finite. */
PRB_API bool prb_out_real(FILE *out, double value);

/* ---- grid.c: rows of text in aligned columns, numbers to the right ---- */

#define PRB_GRID_COLUMNS_MAX 2000 /* SQLite's own limit */

struct prb_grid;

/* The header; a name may be "".  NULL: out of memory, which a later failed add reports, too. */
PRB_API struct prb_grid *prb_grid_new(const char *const *names, size_t columns);
PRB_API void prb_grid_free(struct prb_grid *grid);

/* The next cell of the current row, rows being filled from left to right; text NULL is empty. */
PRB_API bool prb_grid_add(struct prb_grid *grid, const char *text, size_t length, bool number);
PRB_API bool prb_grid_adds(struct prb_grid *grid, const char *text);
PRB_API bool prb_grid_addf(struct prb_grid *grid, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Print; a later call prints the rows added since, in the columns of the first.  terminal: its
 * columns; the widest are cut until all fit.  0: no terminal: nothing is cut, and cells of more
 * than 60 columns stand out of line rather than widen every row.  color: the header is bold.
 */
PRB_API void prb_grid_print(struct prb_grid *grid, FILE *out, unsigned terminal, bool color);
/* Whether the columns fit so many, cut as they may be (0: yes). */
PRB_API bool prb_grid_fits(struct prb_grid *grid, unsigned terminal);
/* A column a line, rows numbered from number; the header stays for more rows. */
PRB_API void prb_grid_print_vertical(struct prb_grid *grid, size_t number, FILE *out, bool color);

/* ---- rows.c: rows of SQL ---- */

/* The names of the formats, the default first.  To add one: rows.c. */
#define PRB_ROW_FORMATS "table json jsonl csv vertical"

struct prb_row_options {
    /* Takes the output piece by piece; false: it cannot, and no more is written. */
    bool (*write)(void *context, const char *text, size_t length);
    void *context;
    bool terminal;    /* CSV: the output is a terminal, so that its text is escaped */
    bool color;       /* table: bold header, dim number of rows */
    bool turn;        /* table: vertical where the columns do not fit */
    unsigned columns; /* table: of the terminal (prb_grid_print), or 0 */
    unsigned cell;    /* table: a cell is cut to so many columns; 0: it is not */
    size_t measured;  /* table: the widths fit the first so many rows, and later ones are written
                       * at once; 0: they fit all rows */
    const char *null; /* table: what stands for NULL; NULL: nothing */
};

struct prb_row_writer;

/*
 * Rows to text: "table", "json" (one array a statement), "jsonl" (one object a line) or "csv"
 * (RFC 4180, lines end with a line feed; NULL is empty and the empty string "").
 * Up to 1 MiB is held back before the first write, so that a query that fails early writes
 * nothing.  options is copied.  Errors: NOT_FOUND (no such format), NOMEM.
 */
PRB_API struct prb_row_writer *prb_row_writer_new(const char *format,
                                                  const struct prb_row_options *options,
                                                  struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_row_writer_free(struct prb_row_writer *writer);
/* A prb_row_fn, with the writer as its context. */
PRB_API bool prb_row_write(void *writer, size_t columns, const char *const *names,
                           const struct prb_value *row);
/* End the last statement and write what is held back.  False with OK: write took no more.
 * Errors: NOMEM, now or before. */
PRB_API bool prb_row_writer_end(struct prb_row_writer *writer, struct prb_error *err);

/* ---- results as JSON (of stacks and tasks: probing.h) ---- */

/* An array of objects, one process a line.  has_probe: whether a probe listens in a process. */
PRB_API void prb_process_list_json(const struct prb_process_list *list,
                                   bool (*has_probe)(pid_t pid), FILE *out);
/* A crash dump: an object with "file" (path), "crash" (null: the file is not a crash dump),
 * "exceptions" and "backtrace" (prb_stacks_json). */
PRB_API bool prb_crash_json(struct prb_target *target, const char *path, FILE *out,
                            struct prb_error *err) PRB_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
