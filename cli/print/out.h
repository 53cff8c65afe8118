/*
 * What every command prints with: text that cannot harm a terminal, colours, widths, JSON values.
 *
 * The target's strings are hostile.  prb_out_text is the only way they reach text output: control
 * characters, escape sequences, direction marks and broken UTF-8 come out escaped, one line each.
 */
#ifndef PRB_CLI_OUT_H
#define PRB_CLI_OUT_H

#include <stdio.h>

#include "probing.h"

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
/* From here on this style, until PLAIN. */
void prb_out_style(FILE *out, enum prb_style style);

/* Columns of the terminal on standard output (COLUMNS goes first); 0: no terminal, no limit. */
unsigned prb_out_columns(void);
unsigned prb_out_lines(void);

void prb_out_text(FILE *out, const char *text);
/* The same for length bytes, which may hold NULs, cut to so many columns (0: not), the cut shown by
 * "…". */
void prb_out_cut(FILE *out, const char *text, size_t length, unsigned columns);
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
/* Columns that prb_out_text would take. */
unsigned prb_out_width(const char *text, size_t length);
void prb_out_pad(FILE *out, unsigned columns);

/* JSON text as it is, but for characters that could harm a terminal: they can stand in strings
 * only, and get escaped. */
void prb_out_json(FILE *out, const char *json, size_t length);
/* A JSON string; broken UTF-8 becomes U+FFFD.  NULL text is null. */
void prb_out_json_text(FILE *out, const char *text, size_t length);
/* The shortest decimal that reads back as the same number, always with a point or exponent; false
 * when not finite. */
bool prb_out_real(FILE *out, double value);

/* "probing: " error, its remedy below; on standard error. */
void prb_out_error(const struct prb_error *err);
/* "probing: note: " text on standard error. */
void prb_out_note(const char *text);
/* Push standard output out; IO when it did not take everything. */
bool prb_out_finish(struct prb_error *err);

/* 1234567 bytes as "1.2M", in units of 1024. */
void prb_out_bytes(char *text, size_t size, double bytes);

#endif
