/* Whose the other end of a TCP connection on this machine is. */
#ifndef PRB_NET_OWNER_H
#define PRB_NET_OWNER_H

#include "probing.h"

/* The user of the socket at the other end of fd's, and its inode, by the kernel's list.  False: it is
 * not on this machine, is closed, or its connection is over.
 * Sources: sock_diag(7), proc_pid_net(5). */
bool prb_socket_owner(int fd, uid_t *uid_out, unsigned long *inode_out);

#endif
