/* A server of its own for this process: the program probing-serve, started beside it. */
#ifndef PRB_PROBE_SERVE_H
#define PRB_PROBE_SERVE_H

#include "base/error.h"
#include "inject/probe/serve/address.h"

#define PRB_SERVE_URL_MAX 600

/*
 * Start it, and wait until it listens, or until the server there, of another rank, has this process,
 * too.  url: its address with the token.  Not on a thread with the GIL.  Errors: NOT_FOUND (the
 * program is not there), IO (what it says), TIMEOUT.  allow: grants of its token, or NULL: those of
 * its environment.
 */
bool prb_serve_start(const char *address, const char *allow, char url[PRB_SERVE_URL_MAX],
                     struct prb_error *err);
/* Overwrite an address with its token. */
void prb_serve_wipe(void *bytes, size_t count);
/* In a child after fork(2). */
void prb_serve_start_forked(void);

#endif
