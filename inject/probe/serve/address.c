#include "inject/probe/serve/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOOPBACK "127.0.0.1"

static bool is_port(const char *text)
{
    size_t len = strlen(text);
    return len && len <= 5 && strspn(text, "0123456789") == len && atoi(text) < 65536;
}

bool prb_serve_address_check(const char *text, struct prb_error *err)
{
    const char *colon = strrchr(text, ':');
    size_t host = colon ? (size_t)(colon - text) : 0;
    bool whole = host && host < PRB_SERVE_ADDRESS_MAX - 10 && is_port(colon + 1) &&
                 strcspn(text, "/ #?@") > host;
    return !*text || strcasecmp(text, "random") == 0 || is_port(text) || whole ||
           prb_fail(err, PRB_USAGE, "an address is HOST:PORT, a port, or RANDOM, not \"%.60s\"",
                    text);
}

void prb_serve_address_whole(const char *text, char out[PRB_SERVE_ADDRESS_MAX])
{
    bool random = strcasecmp(text, "random") == 0;
    if (random || is_port(text))
        snprintf(out, PRB_SERVE_ADDRESS_MAX, LOOPBACK ":%s", random ? "0" : text);
    else
        snprintf(out, PRB_SERVE_ADDRESS_MAX, "%s", text);
}
