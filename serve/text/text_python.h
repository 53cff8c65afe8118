/* Python in a session of plain text: lines as the interactive interpreter takes them. */
#ifndef PRB_SERVE_TEXT_PYTHON_H
#define PRB_SERVE_TEXT_PYTHON_H

#include <sys/types.h>

#include "base/buf.h"
#include "inject/control.h"

struct prb_text_python {
    pid_t pid; /* whose probe control is; 0: none yet */
    struct prb_control *control;
    struct prb_buf block; /* lines that are not whole yet; none: empty */
};
void prb_text_python_deinit(struct prb_text_python *python);

struct prb_text_line {
    pid_t pid;
    const char *text;
    bool (*output)(void *context, int stream, const char *text, size_t len);
    bool (*cancelled)(void *context);
    void *context;
};
/* Take one line, and run what it completes, streaming what that prints and its value.  A block waits
 * in python->block for its empty line.  Errors: those of prb_ensure_probe and prb_control_eval. */
bool prb_text_python_line(struct prb_text_python *python, const struct prb_text_line *line,
                          struct prb_error *err);

#endif
