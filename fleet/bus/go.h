/*
 * Acting on ranks needs a fresh go: an agent that is asked to act answers with a nonce, and acts
 * when a go for it, signed by a key that its bus file trusts, comes within two seconds of its own
 * clock.  So what lay in the socket of a stopped agent is never run late, and what was heard is
 * never run again.
 */
#ifndef PRB_FLEET_GO_H
#define PRB_FLEET_GO_H

#include "fleet/bus/bus_file.h"
#include "fleet/bus/roster.h"
#include "fleet/message/message.h"

#define PRB_GO_NONCE 33   /* 16 random bytes in hexadecimal, and a NUL */
#define PRB_GO_WITHIN 2.0 /* s */
#define PRB_GO_HELD 64    /* requests that wait for their go */

/* ---- the asker ---- */

/* {"v": 1, "id", "prepare": REQUEST as a string}; the texts are the caller's. */
char *prb_go_prepare(const char *id, const char *request, struct prb_error *err);
/* Of an agent's answer to it. */
bool prb_go_ready(const char *data, size_t len, const char *id, char nonce_out[PRB_GO_NONCE]);
/* {"v": 1, "id", "go": {nonce, key, signature}} for the agent of that key. */
char *prb_go_text(const struct prb_nkey *key, const char *id, const char *agent, const char *nonce,
                  const char *request, struct prb_error *err);

/* ---- the agent ---- */

struct prb_go_held {
    char id[PRB_FLEET_ID], nonce[PRB_GO_NONCE];
    char *request; /* as text; NULL: the place is free */
    double since;  /* s, CLOCK_BOOTTIME */
};
struct prb_go {
    const char *agent; /* its key in the roster */
    const unsigned char *trusted;
    struct prb_go_held held[PRB_GO_HELD];
};
void prb_go_deinit(struct prb_go *go);

enum prb_go_answer { PRB_GO_REFUSED, PRB_GO_READY, PRB_GO_RUN };
/*
 * What a message to act means.  READY: *out is what to answer.  RUN: *out is the request.  Both are
 * the caller's.  REFUSED: err; id_out: of the request, "" when it has none.  who: the signer's key
 * as text, of RUN.
 */
enum prb_go_answer prb_go_take(struct prb_go *go, const char *data, size_t len, char **out,
                               char id_out[PRB_FLEET_ID], char who[PRB_NKEY_TEXT_SIZE],
                               struct prb_error *err);

#endif
