/*
 * Who may connect to a server: on TCP whoever shows a token, and on loopback also clients of the
 * same user; a Unix socket is its user's alone.
 */
#ifndef PRB_NET_ACCESS_H
#define PRB_NET_ACCESS_H

#include "net/address.h"
#include "net/token.h"

/* What lets a client in.  The address that it comes from does not: anybody on the machine may
 * connect from any of its addresses. */
enum prb_access_rule {
    PRB_ACCESS_BY_TOKEN,
    PRB_ACCESS_BY_USER,    /* the kernel proves whose it is: prb_peer_check */
    PRB_ACCESS_BY_EITHER,  /* by such a user, or by the token that was made */
    PRB_ACCESS_BY_MACHINE, /* it comes by loopback */
};

struct prb_access {
    enum prb_access_rule rule;
    char token[PRB_NET_TOKEN_SIZE]; /* that was made; "": none was */
};

/* The rule for an address, and for what the user of the server chose: a token (NULL: none), and
 * any_user, that on loopback everybody may come in without one.
 * USAGE: the token is too short; any_user without a token on an address that is not loopback. */
bool prb_access_choose(const struct prb_address *address, const char *token, bool any_user,
                       struct prb_access *out, struct prb_error *err);
void prb_access_deinit(struct prb_access *access);

enum prb_access_answer {
    PRB_ACCESS_REFUSED,
    PRB_ACCESS_TOKEN, /* if it shows the token */
    PRB_ACCESS_GRANTED,
};

/* A new connection; also: a user whose clients come in beside ours.  why: of REFUSED. */
enum prb_access_answer prb_access_of(const struct prb_access *access, int fd, uid_t also,
                                     struct prb_error *why);

#endif
