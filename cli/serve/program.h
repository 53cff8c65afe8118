/* probing-serve, a program of its own that links the server's library. */
#ifndef PRB_CLI_SERVE_PROGRAM_H
#define PRB_CLI_SERVE_PROGRAM_H

#include <limits.h>

#include "cli/command.h"

/* Beside this program; in the build one folder above.  UNSUPPORTED: it is not there. */
bool prb_serve_program(char out[PATH_MAX], struct prb_error *err);

/* Become it, with these words behind its name; comes back on failure alone. */
bool prb_serve_become(const char **words, struct prb_error *err);

/* Start a server for process pid at an address, which ends a minute after it, and print its URL. */
bool prb_serve_target(pid_t pid, const char *address, struct prb_error *err);

/* `-t HOST:PORT COMMAND`: the server there runs a command that looks, and we print what it says. */
bool prb_run_elsewhere(const struct prb_run *run, struct prb_error *err);

#endif
