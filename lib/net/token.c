/* Tokens: see token.h. */
#include "net/token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

bool prb_net_token_make(char out[PRB_NET_TOKEN_SIZE], struct prb_error *err)
{
    unsigned char bytes[PRB_NET_TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return prb_fail_sys(err, errno, "making a token");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

bool prb_net_token_same(const char *token, const char *given)
{
    size_t len = strlen(token), given_len = strlen(given);
    unsigned char different = len != given_len;
    for (size_t i = 0; i < given_len; i++)
        different |= (unsigned char)(given[i] ^ token[len ? i % len : 0]);
    return !different;
}
