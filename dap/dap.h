/*
 * The Debug Adapter Protocol server (spec 1.71): any client debugs a live Python process through the probe, looks at one
 * without, or at a core or snapshot.  Command line: cli/dap.c, cli/debug.c.
 */
#ifndef PRB_DAP_DAP_H
#define PRB_DAP_DAP_H

#include "probing.h"

/* Serve one client on two descriptors until it leaves; `attach` says what it is about.  in and out stay the caller's. */
PRB_API bool prb_dap_serve(int in, int out, struct prb_error *err);

#endif
