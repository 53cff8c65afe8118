/* Who may do what: serve.h's grants for one request of HTTP. */
#ifndef PRB_SERVE_ACCESS_H
#define PRB_SERVE_ACCESS_H

#include "serve/doors/doors.h"
#include "serve/doors/tokens.h"
#include "serve/http/route.h"

/* What a request shows of itself; "" for what it has not. */
struct prb_shown {
    struct prb_guest *guest;
    char token[160];                       /* of Authorization: Bearer, or X-Probing-Token */
    char host[256], origin[256], site[32]; /* site: Sec-Fetch-Site */
    bool proxied;                          /* it has a header that a browser or a proxy sets */
};

/*
 * The grants of a request.  0: refused; *status is then 401 (no token, or a wrong one), 403, 421
 * (a name that is not this server's) or 429 (too many wrong tokens), and err says why.
 */
unsigned prb_access_grants(const struct prb_serve *serve, const struct prb_shown *shown,
                           char token_name[PRB_TOKEN_NAME], int *status, struct prb_error *err);
/* Whether a page of this origin ("": none asks) may ask: the server's own under this Host, or one of
 * --origin. */
bool prb_access_origin(const struct prb_serve *serve, const char *origin, const char *host);
/* The grants of a token that a guest shows, and its name; 0: it is wrong, which is counted. */
unsigned prb_access_token(const struct prb_serve *serve, struct prb_guest *guest, const char *token,
                          char name[PRB_TOKEN_NAME], int *status, struct prb_error *err);
/* Whether TCP may carry these grants: code and control only where nobody listens in. */
bool prb_access_carries(const struct prb_serve *serve, unsigned grants, struct prb_error *err);
/* Whether who is on the network between a client and the server can read along. */
bool prb_access_is_open(const struct prb_serve *serve);
/* Whether who asks has this grant; PERMISSION says how it is given, and the log has it. */
bool prb_access_may(const struct prb_serve *serve, const struct prb_question *question,
                    unsigned grant, struct prb_error *err);

#endif
