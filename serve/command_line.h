/* The words that probing-serve was started with: by `probing serve` (options.def), by other commands,
 * and by a probe. */
#ifndef PRB_SERVE_COMMAND_LINE_H
#define PRB_SERVE_COMMAND_LINE_H

#include "serve/client/elsewhere.h"
#include "serve/serve.h"

struct prb_serve_words {
    struct prb_serve_options serve;
    struct prb_elsewhere elsewhere;
    const char *allow;
    const char *attach; /* what prb_serve_agent_attach takes, as JSON */
    bool url, revoke, mcp, unasked, detach;
};

/* out borrows from argv and the environment.  USAGE. */
bool prb_serve_words_take(int argc, char **argv, struct prb_serve_words *out,
                          struct prb_error *err);

#endif
