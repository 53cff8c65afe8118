/* Finding and reaching the socket of a probe. */
#ifndef PRB_INJECT_FIND_H
#define PRB_INJECT_FIND_H

#include "base/error.h"

/* A connected socket to the probe of a process; the other side is that process.  -1: NOT_FOUND,
 * PERMISSION, TIMEOUT. */
int prb_control_connect(pid_t pid, struct prb_error *err);
/* To a socket by its path; pid_out: whose it is, as we see it, 0 when we do not. */
int prb_control_connect_path(const char *path, pid_t *pid_out, struct prb_error *err);

#endif
