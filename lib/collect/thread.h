/* The collector on a thread of a process that does something else, too. */
#ifndef PRB_COLLECT_THREAD_H
#define PRB_COLLECT_THREAD_H

#include "probing.h"

struct prb_collecting;
/*
 * It takes over when another collector ends, and tries again when it failed.  NULL: it is switched
 * off (PROBING_STORE=off), and err stays as it was; else NOMEM.
 */
struct prb_collecting *prb_collecting_begin(void (*say)(void *context, const char *line),
                                            void *context, struct prb_error *err) PRB_MUST_CHECK;
/* Moves what is there, and ends the thread; NULL: nothing. */
void prb_collecting_end(struct prb_collecting *collecting);

#endif
