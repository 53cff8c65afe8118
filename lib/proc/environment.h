/* The environment of a process as its launchers and its own code set it. */
#ifndef PRB_PROC_ENVIRONMENT_H
#define PRB_PROC_ENVIRONMENT_H

#include "proc/proc.h"

/*
 * Append "NAME=value" texts, each with its NUL.  /proc/PID/environ is what the process was executed
 * with.  Ray Train, Lightning and torch.multiprocessing set RANK inside: where it is absent and
 * PyTorch is mapped, libc's own list is read instead.  code: the maps of files with code, or NULL
 * (they are asked for).  False: neither can be read.
 */
bool prb_proc_environment(struct prb_proc *proc, const struct prb_maps *code, struct prb_buf *out);

#endif
