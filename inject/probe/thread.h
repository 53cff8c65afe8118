/* Threads of the probe: detached, small, with all signals blocked from their first instruction. */
#ifndef PRB_PROBE_THREAD_H
#define PRB_PROBE_THREAD_H

#include "base/error.h"

#define PRB_THREAD_STACK (256u << 10)

/* name: at most 15 characters, borrowed for ever. */
bool prb_thread_start(const char *name, void *(*work)(void *context), void *context,
                      struct prb_error *err);

#endif
