/*
 * The conversation with a target, as its % commands see it.
 * To add one: its function and a line in the table of commands.c.
 */
#ifndef PRB_CLI_REPL_H
#define PRB_CLI_REPL_H

#include "cli/probe/evaluate.h"

struct prb_repl {
    const struct prb_run *run;
    struct prb_eval_place place; /* control NULL: the probe is gone */
    char *pending; /* lines of a block that is not complete, without the last line's end; or NULL */
    bool pasted;   /* they were pasted, and run together */
    bool typed;    /* by somebody at a terminal */
    bool leave, failed; /* failed: something went wrong, for a script's exit status */
};

/* A line that begins with "%". */
bool prb_repl_command(struct prb_repl *repl, const char *line, struct prb_error *err);
/* Names of commands that begin with the first len bytes of line, malloc'ed. */
bool prb_repl_complete_command(const char *line, size_t len, struct prb_strings *out);
/* Run code and print what comes; *incomplete_out (NULL: AUTO, it cannot be): more lines are needed.
 */
bool prb_repl_run(struct prb_repl *repl, const char *code, bool *incomplete_out,
                  struct prb_error *err);

#endif
