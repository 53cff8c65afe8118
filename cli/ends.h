/* The signals by which a user, a terminal or a launcher ends a command. */
#ifndef PRB_CLI_ENDS_H
#define PRB_CLI_ENDS_H

#include <signal.h>
#include <stdbool.h>

/*
 * From here on Ctrl-C, SIGTERM and a hang-up of the terminal make a descriptor readable, which the
 * caller closes, and end nothing by themselves.  -1: errno.  Before any thread is made, so that
 * none takes them.  signalfd(2)
 */
int prb_take_ends(void);

/*
 * Wait for the end of a child of ours, and pass on to it the signals that came by that descriptor:
 * those that a terminal sent it has already.  seconds: at the most so long, -1: until it ends.
 * Returns whether it has ended; it is not reaped.  *signalled: whether any signal came, if not
 * NULL.
 */
bool prb_await_child(pid_t child, int ends, double seconds, bool *signalled);

#endif
