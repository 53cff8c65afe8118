/*
 * Nothing ambient lets anybody in: over TCP the token alone, which no browser adds by itself.  On
 * the Unix socket the kernel proves the user; a request there that carries a browser's or a proxy's
 * header speaks for somebody else, so it may look, and only under a loopback name (DNS rebinding).
 */
#include "serve/doors/access.h"

#include <string.h>
#include <strings.h>

#include "format/log_file.h"
#include "net/peer.h"

#define WRONG_MAX 10

static unsigned wrong(struct prb_guest *guest, int *status, struct prb_error *err)
{
    if (prb_guest_wrong(guest) <= WRONG_MAX) {
        *status = 401;
        prb_fail(err, PRB_PERMISSION, "the token is wrong");
        prb_error_remedy(err, "`probing serve --url` prints the address with the token");
    } else {
        *status = 429;
        prb_fail(err, PRB_BUSY, "too many wrong tokens: wait for a minute");
    }
    return 0;
}

/* With any port. */
static bool is_named(const char *host, const char *const *names)
{
    for (; *names; names++) {
        size_t len = strlen(*names);
        if (strcmp(*names, "*") == 0)
            return true;
        if (strncasecmp(host, *names, len) == 0 && (!host[len] || host[len] == ':') &&
            !strpbrk(host + len, "@, "))
            return true;
    }
    return false;
}

bool prb_access_origin(const struct prb_serve *serve, const char *origin, const char *host)
{
    const char *name = strstr(origin, "://");
    if (!*origin || (name && strcasecmp(name + 3, host) == 0))
        return true;
    for (const char *const *one = serve->options->origins; *one; one++)
        if (strcasecmp(*one, origin) == 0)
            return true;
    return false;
}

/* Without a token, through a proxy to the Unix socket, or by TCP where none is asked for. */
static unsigned look_grant(const struct prb_serve *serve, const struct prb_shown *shown,
                           int *status, struct prb_error *err)
{
    static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]", NULL};
    bool bare = !*shown->host && !shown->proxied; /* of a program: no browser leaves it out */
    if (!bare && !is_named(shown->host, loopback) &&
        !is_named(shown->host, serve->options->hosts)) {
        *status = 421;
        prb_fail(err, PRB_PERMISSION, "\"%.80s\" is no name of this server", shown->host);
        return 0;
    }
    bool same = prb_access_origin(serve, shown->origin, shown->host);
    bool site =
        !*shown->site || !strcmp(shown->site, "same-origin") || !strcmp(shown->site, "none");
    if (same && site)
        return PRB_MAY_LOOK;
    *status = 403;
    prb_fail(err, PRB_PERMISSION, "another page asks: %.80s", shown->origin);
    return 0;
}

unsigned prb_access_token(const struct prb_serve *serve, struct prb_guest *guest, const char *token,
                          char name[PRB_TOKEN_NAME], int *status, struct prb_error *err)
{
    bool right = *serve->token && prb_net_token_same(serve->token, token);
    snprintf(name, PRB_TOKEN_NAME, "%s", right ? "token" : "");
    unsigned grants = right ? serve->grants : prb_tokens_grants(serve->tokens, token, name);
    return grants ? grants : wrong(guest, status, err);
}

bool prb_access_is_open(const struct prb_serve *serve)
{
    return serve->address.len && !serve->certificate &&
           !prb_address_is_loopback(&serve->address.any);
}

bool prb_access_carries(const struct prb_serve *serve, unsigned grants, struct prb_error *err)
{
    char text[PRB_ADDRESS_TEXT];
    if (!(grants & ~(unsigned)PRB_MAY_LOOK) || !prb_access_is_open(serve))
        return true;
    prb_address_print(&serve->address, text);
    prb_fail(err, PRB_USAGE, "%s is not loopback: %s must not come over an open network", text,
             grants & PRB_MAY_EVAL ? "code" : "control");
    return prb_error_remedy(err, "--cert and --key encrypt it");
}

unsigned prb_access_grants(const struct prb_serve *serve, const struct prb_shown *shown,
                           char token_name[PRB_TOKEN_NAME], int *status, struct prb_error *err)
{
    bool local = shown->guest->peer.local;
    *token_name = '\0';
    if (!*shown->token) {
        if (local && !shown->proxied)
            return PRB_MAY_ALL;
        if (local || (serve->options->no_token && prb_peer_check(shown->guest->fd, 0, NULL)))
            return look_grant(serve, shown, status, err);
        *status = 401;
        prb_fail(err, PRB_PERMISSION, "a token is needed");
        prb_error_remedy(err, "`probing serve --url` prints the address with the token");
        return 0;
    }
    unsigned grants = prb_access_token(serve, shown->guest, shown->token, token_name, status, err);
    return grants && local && !shown->proxied ? PRB_MAY_ALL : grants;
}

bool prb_access_may(const struct prb_serve *serve, const struct prb_question *question,
                    unsigned grant, struct prb_error *err)
{
    const char *name = grant & PRB_MAY_EVAL ? "eval" : "control";
    if (!(grant & ~question->grants))
        return true;
    prb_log_file_add(serve->log, "refused %s: %.200s needs the grant %s", question->who,
                     question->path, name);
    prb_fail(err, PRB_PERMISSION, "this needs the grant %s", name);
    return prb_error_remedy(
        err, "`probing serve --url --allow %s` prints an address whose token has it", name);
}
