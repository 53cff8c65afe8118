/* Redraw text at an interval until the user or the target ends. */
#ifndef PRB_CLI_WATCH_H
#define PRB_CLI_WATCH_H

#include <stdio.h>

#include "probing.h"

/* Write one screen to out. */
typedef bool prb_watch_fn(void *context, FILE *out, struct prb_error *err);

/*
 * On a terminal each screen replaces the last; elsewhere they follow each other, an
 * empty line between. Ends well on Ctrl-C, SIGTERM, a hang-up, and when the process pid (0: none)
 * ends, which is said in a last line.
 */
bool prb_watch(pid_t pid, double seconds, prb_watch_fn *draw, void *context, struct prb_error *err);

#endif
