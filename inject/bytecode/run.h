/*
 * Compiling with the target's interpreter, in a process of its own.
 *
 * That process must not get a right that the target does not have.  So it is made only when all
 * this holds: the target's program has a name of Python; it is in our namespaces, with our seccomp
 * mode and security label; and it has our ids and capabilities, or we are root and the process
 * drops to the target's ids for good, without capabilities.  Another root folder is entered.
 * (Landlock(7) cannot be checked.)  With our own ids, the program must belong to root or us.
 *
 * The process gets three descriptors, LD_LIBRARY_PATH and PYTHONHOME of the target's environment
 * (not as root), and no key of our session.  It cannot make processes, and ends after 3 s at most
 * with all that it started: it is the first of a pid namespace where we may make one.  It is not in
 * the target's control group, where its memory could get the target killed.
 */
#ifndef PRB_INJECT_BYTECODE_RUN_H
#define PRB_INJECT_BYTECODE_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* Append a sealed blob.  *ours_out: it was made with our own rights, so that it may be cached for
 * other processes.  The calling thread must not end meanwhile.  False: none was made. */
bool prb_bytecode_make(pid_t pid, struct prb_buf *out, bool *ours_out);

#endif
