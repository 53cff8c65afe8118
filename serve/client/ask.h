/* The other side: a question to a running server, for `-t HOST:PORT` and `probing serve --url`. */
#ifndef PRB_SERVE_ASK_H
#define PRB_SERVE_ASK_H

#include "base/buf.h"
#include "base/error.h"

struct prb_ask {
    const char *address; /* "HOST:PORT", or the path of a Unix socket */
    bool tls;            /* encrypted, and the server shows its certificate */
    const char
        *pin; /* of that one alone (prb_certificate_pin); NULL: who vouches for it is known */
    const char *token; /* NULL or "": none is shown */
    const char *method, *path;
    const char *accept; /* NULL: JSON */
    const char *body;   /* JSON; NULL: none */
    double seconds;     /* until the answer must be whole */
};
/* Ask, and take the whole answer.  Errors: what the server answers; IO, TIMEOUT, CORRUPT (it is no
 * server of ours). */
bool prb_ask(const struct prb_ask *ask, struct prb_buf *body, struct prb_error *err);

#endif
