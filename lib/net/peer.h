/* Who is at the other end of a connection to our port. */
#ifndef PRB_NET_PEER_H
#define PRB_NET_PEER_H

#include "probing.h"

/* Whether the kernel proves that the other end of a TCP connection on this machine, or of a Unix
 * socket, is of this user or of user also; of user 0, that it is no container's.  Nothing is
 * taken for granted that cannot be found. PERMISSION: it is another's, or whose it is cannot be
 * found.  Source: unix(7), proc_pid_net(5), namespaces(7). */
bool prb_peer_check(int fd, uid_t also, struct prb_error *err);

#endif
