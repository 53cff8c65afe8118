/* Secrets that clients show to be let in. */
#ifndef PRB_NET_TOKEN_H
#define PRB_NET_TOKEN_H

#include "probing.h"

#define PRB_NET_TOKEN_BYTES 16 /* random bytes of a token, two digits each */
#define PRB_NET_TOKEN_SIZE (2 * PRB_NET_TOKEN_BYTES + 1) /* of its text, with the NUL */
#define PRB_NET_TOKEN_MIN 16 /* characters of a token that a user chose */

bool prb_net_token_make(char out[PRB_NET_TOKEN_SIZE], struct prb_error *err);
/* In a time that depends on what was given only, not on how much of it is right. */
bool prb_net_token_same(const char *token, const char *given);

#endif
