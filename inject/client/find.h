/* Finding and reaching the socket of a probe. */
#ifndef PRB_INJECT_FIND_H
#define PRB_INJECT_FIND_H

#include "base/error.h"

/* A socket that is connected to the probe of a process, and proven to be that process's.  -1:
 * NOT_FOUND, PERMISSION, TIMEOUT. */
int prb_control_connect(pid_t pid, struct prb_error *err);
/* To a socket by its path; pid_out: its process in our pid namespace, 0: not visible. */
int prb_control_connect_path(const char *path, pid_t *pid_out, struct prb_error *err);

#endif
