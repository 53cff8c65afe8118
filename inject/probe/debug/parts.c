/*
 * The sources of debug_*.py as bytes (parts.h).  parts.inc, made by parts.mk, has an array
 * NAME_source of each and a P(NAME) of each in DEBUG_PARTS.
 */
#include "inject/probe/debug/parts.h"

#include "inject/probe/debug/parts.inc"

const struct prb_debug_part prb_debug_parts[] = {
#define P(name) {#name, name##_source, sizeof name##_source - 1},
    DEBUG_PARTS(P)
#undef P
    {0},
};
