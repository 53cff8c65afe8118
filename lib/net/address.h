/*
 * The address that a server listens at: "HOST:PORT", "[V6]:PORT", or the path of a Unix socket.
 * Relies on ip(7), ipv6(7), unix(7).
 */
#ifndef PRB_NET_ADDRESS_H
#define PRB_NET_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "probing.h"

struct prb_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
        struct sockaddr_storage room;
    };
    socklen_t len;
};

#define PRB_ADDRESS_TEXT 128 /* bytes of an address as text, with the NUL */

/* Text with a '/' is a path.  Without a host: 127.0.0.1.  Port 0: any free one.
 * Errors: USAGE, NOT_FOUND (the host is not known). */
bool prb_address_parse(const char *text, struct prb_address *out, struct prb_error *err);

/* As prb_address_parse takes it. */
void prb_address_print(const struct prb_address *address, char out[PRB_ADDRESS_TEXT]);

/* Whether only this machine reaches it: 127.0.0.0/8, ::1, or a Unix socket. */
bool prb_address_is_loopback(const struct sockaddr *address);

/* A socket that listens there: non-blocking, close-on-exec.  The address then has the real port; a
 * Unix socket is open to its owner alone (0600), and the caller removes its file.  -1: err. */
int prb_address_listen(struct prb_address *address, int backlog, struct prb_error *err);

#endif
