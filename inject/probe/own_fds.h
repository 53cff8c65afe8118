/*
 * What of the probe a fork(2) must know: whose it is, and its descriptors.  A child has no probe;
 * the handler that pthread_atfork(3) runs there closes the descriptors, so that no client is served
 * by nobody.
 */
#ifndef PRB_PROBE_OWN_FDS_H
#define PRB_PROBE_OWN_FDS_H

#include <stdbool.h>

#define PRB_OWN_MAX 64

/* Register the handlers, once.  after: what else a child does, first of all.  False: no memory. */
bool prb_own_fds_register(void (*after)(void));
/* Make a descriptor and note it without a fork in between; make gives it, or -1.  Short work only:
 * a fork waits. */
int prb_own_fd_make(int (*make)(void *context), void *context);
/* -1 is fine. */
void prb_own_fd_close(int fd);

#endif
