/* Who is at the other end of a connection to our port. */
#ifndef PRB_DAP_PEER_H
#define PRB_DAP_PEER_H

#include "probing.h"

/* Whether an address is this machine's own loopback; HOST:PORT, [V6]:PORT. */
struct sockaddr;
bool prb_dap_is_loopback(const struct sockaddr *address);
/* Whether the other end of a connection over loopback, or of a Unix socket, belongs to this user, to root, or to user
 * also.  PERMISSION: to another, or it cannot be found.  Source: proc_pid_net(5), /proc/net/tcp. */
bool prb_dap_peer_check(int fd, uid_t also, struct prb_error *err);

#endif
