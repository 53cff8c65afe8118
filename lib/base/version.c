/* The version of the library. */
#include "config.h"
#include "probing.h"

const char *prb_version(void) { return PACKAGE_VERSION; }
