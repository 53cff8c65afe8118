/* Lines typed by a user, with history and completion, or read from a pipe.  One at a time in a
 * process. */
#ifndef PRB_CLI_LINE_H
#define PRB_CLI_LINE_H

#include "inject/control.h"

enum prb_line_event {
    PRB_LINE_READ,
    PRB_LINE_PASTED,      /* several lines at once, what was typed before them in front */
    PRB_LINE_END,         /* of the input; Ctrl-D */
    PRB_LINE_INTERRUPTED, /* Ctrl-C: what was typed is dropped */
    PRB_LINE_WATCHED,     /* the watched descriptor was closed by its peer */
};

struct prb_line_reader {
    /* Fill out with what may follow at cursor (bytes of line); false: nothing. */
    bool (*complete)(void *context, const char *line, size_t cursor, struct prb_strings *out);
    void *context;
    int watched; /* a socket, or -1 */
};

/* Take the terminal, or the pipe; true: somebody types. */
bool prb_line_begin(const struct prb_line_reader *reader);
void prb_line_watch(int watched);
/* The next line without its end (of what was pasted the last one may have its end), freed by the caller; prompts go to a terminal only. */
enum prb_line_event prb_line_read(const char *prompt, char **line_out);
/* Keep the history. */
void prb_line_end(void);

#endif
