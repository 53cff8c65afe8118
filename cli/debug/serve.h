/* What `debug` and `dap` share: a server until Ctrl-C, tokens, and what the user pastes into an
 * editor. */
#ifndef PRB_CLI_SERVE_H
#define PRB_CLI_SERVE_H

#include "cli/command.h"
#include "dap/dap.h"

/* The token of file, or of PROBING_DEBUG_TOKEN, freed by the caller; *token_out NULL: neither is
 * there. The variable is gone then, so that programs that are launched do not inherit it. */
bool prb_serve_token(const char *file, char **token_out, struct prb_error *err);
/* Serve until the target ends, or SIGINT or SIGTERM comes; says on standard output where, the
 * launch.json, and the token that was made. */
bool prb_serve(struct prb_dap_listen_options *options, struct prb_error *err);

#endif
