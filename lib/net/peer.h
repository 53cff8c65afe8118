/* Who is at the other end of a connection to our port. */
#ifndef PRB_NET_PEER_H
#define PRB_NET_PEER_H

#include "probing.h"

/* Whether the kernel proves that the other end of a Unix socket, or of a TCP connection on this
 * machine, belongs to our user or to user `also`; of root also that it is not a container's.
 * PERMISSION: it belongs to another user, or its user cannot be found.
 * Sources: unix(7), proc_pid_net(5), namespaces(7). */
bool prb_peer_check(int fd, uid_t also, struct prb_error *err);

#endif
