/*
 * Having the target's interpreter compile, in a process of its own.
 *
 * That process must get no right that the target has not.  It is made when we can see to that: the
 * target's program is a python by its name, it is in our namespaces, under no other seccomp mode or
 * security label, and has our ids and capabilities - or we are root, and it drops to the target's
 * ids, without any capability and for good.  Another root folder is entered.  (Landlock(7) cannot
 * be seen.)  Run by our own ids the program must be root's or ours.  It gets three descriptors, the
 * names LD_LIBRARY_PATH and PYTHONHOME of the target's environment unless it runs as root, no key
 * of our session, may make no process, and ends at the latest after 3 s, with all that it began:
 * where we may, it is the first of a pid namespace.  It stays out of the target's control group: a
 * group that runs out of memory by it could lose the target.
 */
#ifndef PRB_INJECT_BYTECODE_RUN_H
#define PRB_INJECT_BYTECODE_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* Append a sealed blob.  *ours_out: it ran by our own rights, so that it may be kept for other
 * processes.  To be called on a thread that lives on meanwhile.  False: none was made. */
bool prb_bytecode_make(pid_t pid, struct prb_buf *out, bool *ours_out);

#endif
