/* Second tokens: each lets in for some hours, with grants of its own, and is kept in memory alone. */
#ifndef PRB_SERVE_TOKENS_H
#define PRB_SERVE_TOKENS_H

#include <stddef.h>

#include "base/error.h"
#include "net/token.h"

#define PRB_TOKENS_MAX 16
#define PRB_TOKEN_SECONDS (8 * 3600.0)
#define PRB_TOKEN_NAME 24 /* bytes: "second token 12" */

struct prb_tokens;
struct prb_tokens *prb_tokens_new(void);
void prb_tokens_free(struct prb_tokens *tokens);
/* BUSY: there are 16. */
bool prb_tokens_add(struct prb_tokens *tokens, unsigned grants, char token[PRB_NET_TOKEN_SIZE],
                    struct prb_error *err);
/* What a token lets do, and its name; 0: it is none of them. */
unsigned prb_tokens_grants(struct prb_tokens *tokens, const char *shown, char name[PRB_TOKEN_NAME]);
/* End all; how many there were. */
size_t prb_tokens_revoke(struct prb_tokens *tokens);
/* How many are valid. */
size_t prb_tokens_count(struct prb_tokens *tokens);

#endif
