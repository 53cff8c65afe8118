/*
 * A full screen by ncurses, which is opened when first used; and the lines that are put on it, or
 * on a pipe.
 */
#ifndef PRB_CLI_SCREEN_H
#define PRB_CLI_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#include "probing.h"

#define PRB_LINES_MAX 1024 /* of one screen */

enum prb_line_style {
    PRB_LINE_PLAIN,
    PRB_LINE_TITLE,
    PRB_LINE_HEAD,
    PRB_LINE_CHOSEN,
    PRB_LINE_SUBTLE,
    PRB_LINE_GOOD
};

/* Lines being written: text goes to out, prb_lines_end() ends one. */
struct prb_lines {
    FILE *out;
    char *text;
    size_t size, count;
    unsigned char styles[PRB_LINES_MAX];
};
bool prb_lines_begin(struct prb_lines *lines);
void prb_lines_end(struct prb_lines *lines, enum prb_line_style style);
/* The text is whole: lines end with a line feed each.  False: out of memory. */
bool prb_lines_finish(struct prb_lines *lines);
void prb_lines_free(struct prb_lines *lines);

enum prb_key {
    PRB_KEY_NONE = -1,
    PRB_KEY_UP = 0x10000,
    PRB_KEY_DOWN,
    PRB_KEY_PAGE_UP,
    PRB_KEY_PAGE_DOWN,
    PRB_KEY_HOME,
    PRB_KEY_END,
    PRB_KEY_ENTER,
    PRB_KEY_BACK,
    PRB_KEY_RESIZED,
    PRB_KEY_OTHER
};

/* Take the terminal of standard input and output.  Errors: UNSUPPORTED (no ncurses, or a terminal
 * that it does not know). */
bool prb_screen_open(struct prb_error *err);
void prb_screen_close(void);
unsigned prb_screen_columns(void);
unsigned prb_screen_lines(void);
void prb_screen_show(const struct prb_lines *lines);
/* A character, or PRB_KEY_*; at once, PRB_KEY_NONE when none was pressed. */
int prb_screen_key(void);

#endif
