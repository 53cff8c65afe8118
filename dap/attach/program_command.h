/* The command of a program that `launch` starts: its arguments, its environment, and the few lines
 * that run before it. */
#ifndef PRB_DAP_PROGRAM_COMMAND_H
#define PRB_DAP_PROGRAM_COMMAND_H

#include <jansson.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "dap/session/request.h"

#define PRB_DAP_WORDS_MAX 4096

struct prb_dap_words {
    char *items[PRB_DAP_WORDS_MAX + 1]; /* ends with NULL */
    size_t count;
    bool typed; /* the last one is what the user has typed, for a shell to read */
};
void prb_dap_words_deinit(struct prb_dap_words *words);
PRB_DEFINE_AUTO(prb_dap_words, struct prb_dap_words, prb_dap_words_deinit)

/* The interpreter, with lines of ours that connect to the Unix socket gate, wait there for a byte,
 * and then run the program that the arguments of launch name.  args may be a text: a shell reads it
 * (shell), or it is split as a shell would.  USAGE, NOT_FOUND. */
bool prb_dap_program_command(const char *gate, const json_t *arguments, bool shell,
                             struct prb_dap_words *words, struct prb_error *err);
/* Our environment, changed as the configuration says (null: remove), with unbuffered output. */
bool prb_dap_program_environment(const json_t *arguments, struct prb_dap_words *words,
                                 struct prb_error *err);

#endif
