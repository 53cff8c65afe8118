/* Who may connect: see access.h. */
#include "net/access.h"

#include <string.h>

#include "base/error.h"
#include "net/peer.h"

static enum prb_access_rule rule_of(const struct prb_address *address, bool token, bool any_user)
{
    if (token)
        return PRB_ACCESS_BY_TOKEN;
    if (any_user)
        return PRB_ACCESS_BY_MACHINE;
    if (address->any.sa_family == AF_UNIX)
        return PRB_ACCESS_BY_USER;
    return prb_address_is_loopback(&address->any) ? PRB_ACCESS_BY_EITHER : PRB_ACCESS_BY_TOKEN;
}

bool prb_access_choose(const struct prb_address *address, const char *token, bool any_user,
                       struct prb_access *out, struct prb_error *err)
{
    char text[PRB_ADDRESS_TEXT];
    if (token && strlen(token) < PRB_NET_TOKEN_MIN)
        return prb_fail(err, PRB_USAGE, "the token has fewer than %d characters",
                        PRB_NET_TOKEN_MIN);
    if (any_user && !token && !prb_address_is_loopback(&address->any)) {
        prb_address_print(address, text);
        prb_fail(err, PRB_USAGE, "%s is not loopback, and whoever connects there can run any code",
                 text);
        return prb_error_remedy(err, "leave --any-user out: clients then show a token");
    }
    *out = (struct prb_access){.rule = rule_of(address, token, any_user)};
    bool shown = out->rule == PRB_ACCESS_BY_TOKEN || out->rule == PRB_ACCESS_BY_EITHER;
    return token || !shown || prb_net_token_make(out->token, err);
}

void prb_access_deinit(struct prb_access *access) { explicit_bzero(access, sizeof *access); }

static bool is_from_loopback(int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
           prb_address_is_loopback((const struct sockaddr *)&peer);
}

enum prb_access_answer prb_access_of(const struct prb_access *access, int fd, uid_t also,
                                     struct prb_error *why)
{
    switch (access->rule) {
    case PRB_ACCESS_BY_TOKEN:
        return PRB_ACCESS_TOKEN;
    case PRB_ACCESS_BY_EITHER:
        return prb_peer_check(fd, also, NULL) ? PRB_ACCESS_GRANTED : PRB_ACCESS_TOKEN;
    case PRB_ACCESS_BY_MACHINE:
        if (is_from_loopback(fd))
            return PRB_ACCESS_GRANTED;
        prb_fail(why, PRB_PERMISSION, "a connection from another address than loopback is refused");
        return PRB_ACCESS_REFUSED;
    case PRB_ACCESS_BY_USER:
        break;
    }
    return prb_peer_check(fd, also, why) ? PRB_ACCESS_GRANTED : PRB_ACCESS_REFUSED;
}
