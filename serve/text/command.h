/*
 * What the command line prints, for answers as text: the program itself runs, so that the text is
 * the same byte for byte, and so that a look which goes wrong ends nothing else.
 */
#ifndef PRB_SERVE_COMMAND_H
#define PRB_SERVE_COMMAND_H

#include "serve/serve.h"

/* A piece of its standard output or error; false: no more is wanted. */
typedef bool prb_command_fn(void *context, bool error, const char *bytes, size_t count);

struct prb_command_run {
    const char *program;
    const char *const *arguments;   /* behind the program's name; ends with NULL */
    bool (*goes_on)(void *context); /* asked 20 times a second; false ends the program */
    prb_command_fn *piece;
    void *context;
};
/* Run it to its end; *status: its exit status, -1 when it was ended.  False: it could not start. */
bool prb_command_run(const struct prb_command_run *run, int *status, struct prb_error *err);

/* What its exit status says went wrong; INTERNAL: it is none of prb_code_exit. */
enum prb_code prb_command_code(int status);

/* The command line's program beside this one.  NOT_FOUND. */
bool prb_command_program(char *out, size_t size, struct prb_error *err);

#endif
