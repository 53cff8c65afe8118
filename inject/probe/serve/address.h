/* The texts of probing.listen. */
#ifndef PRB_PROBE_SERVE_ADDRESS_H
#define PRB_PROBE_SERVE_ADDRESS_H

#include <stddef.h>

#include "base/error.h"

#define PRB_SERVE_ADDRESS_MAX 300 /* bytes */

/* Whether it is "", HOST:PORT, a port, or RANDOM.  USAGE. */
bool prb_serve_address_check(const char *text, struct prb_error *err);
/* It as HOST:PORT: a port alone is on loopback, RANDOM and 0 are a free one. */
void prb_serve_address_whole(const char *text, char out[PRB_SERVE_ADDRESS_MAX]);

#endif
