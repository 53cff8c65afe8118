/*
 * What every command prints with: colours, widths and messages here; text that cannot harm a
 * terminal, columns, JSON and rows in format/format.h.
 */
#ifndef PRB_CLI_OUT_H
#define PRB_CLI_OUT_H

#include "base/cleanup.h"
#include "format/format.h"

PRB_DEFINE_AUTO_PTR(prb_grid, struct prb_grid, prb_grid_free)
PRB_DEFINE_AUTO_PTR(prb_row_writer, struct prb_row_writer, prb_row_writer_free)

enum prb_style {
    PRB_STYLE_PLAIN,
    PRB_STYLE_TITLE,
    PRB_STYLE_FUNCTION,
    PRB_STYLE_PLACE,
    PRB_STYLE_SUBTLE,
    PRB_STYLE_GOOD,
    PRB_STYLE_WARNING,
};

/* when: "auto" (a terminal, and NO_COLOR unset), "always" or "never". */
void prb_out_color(const char *when);
bool prb_out_is_colored(void);
/* From here on this style, until PLAIN. */
void prb_out_style(FILE *out, enum prb_style style);

/* Columns of the terminal on standard output (COLUMNS goes first); 0: no terminal, no limit. */
unsigned prb_out_columns(void);
unsigned prb_out_lines(void);

/* Text that comes in pieces, lines and tabs kept: to a terminal harmless, to anything else as it
 * is. */
struct prb_out_stream {
    FILE *file;
    char held[4]; /* the beginning of a character whose rest comes later */
    size_t held_length;
};
/* At once, past the buffer; false when the file does not take it. */
bool prb_out_stream(struct prb_out_stream *stream, const char *text, size_t length);
void prb_out_stream_end(struct prb_out_stream *stream);
void prb_out_pad(FILE *out, unsigned columns);

/* "probing: " error, its remedy below; on standard error. */
void prb_out_error(const struct prb_error *err);
/* "probing: note: " and text on standard error, each line of it so. */
void prb_out_note(const char *text);
/* Show on a terminal how far the command is, once it has taken a second. */
void prb_out_progress(void);
/* Push standard output out; IO when it did not take everything. Where nobody reads it, SIGPIPE ends the command. */
bool prb_out_finish(struct prb_error *err);

/* A finding of a skill: "high   " before its sentence, where and what to do next below it. */
void prb_out_finding_begin(enum prb_severity severity);
void prb_out_finding_end(const char *where, const char *next);

/* 1234567 bytes as "1.2M", in units of 1024. */
void prb_out_bytes(char *text, size_t size, double bytes);

#endif
