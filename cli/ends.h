/* The signals by which a user, a terminal or a launcher ends a command. */
#ifndef PRB_CLI_ENDS_H
#define PRB_CLI_ENDS_H

#include <signal.h>

/*
 * From here on Ctrl-C, SIGTERM and a hang-up of the terminal make a descriptor readable, which the
 * caller closes, and end nothing by themselves.  -1: errno.  Before any thread is made, so that
 * none takes them.  signalfd(2)
 */
int prb_take_ends(void);

#endif
