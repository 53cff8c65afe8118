/* The listening socket and who connects to it. */
#ifndef PRB_PROBE_SERVER_LISTEN_H
#define PRB_PROBE_SERVER_LISTEN_H

#include "inject/probe/socket_path.h"

/* Bound in the place and listening; noted by own_fds.h.  -1: err. */
int prb_listen_open(const struct prb_socket_path *place, struct prb_error *err);
/* The eventfd that wakes the server; -1: err. */
int prb_listen_wake(struct prb_error *err);
/* The next connection of somebody who may: the same effective user, or root as this user namespace
 * maps it.  Others get the reason and are dropped, as everybody is when full.  -1: none, errno as
 * accept(2) left it, else 0. */
int prb_listen_accept(int listener, bool full, char *who, size_t cap);
/* s since the epoch. */
double prb_listen_time(void);

#endif
