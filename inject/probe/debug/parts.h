/*
 * The debugger's Python, kept as bytes: debug_NAME.py of this folder.  "agent" is executed by the
 * session (debug.h says in what), the others by it when they are first needed.
 * To add one: its NAME in parts.mk.
 */
#ifndef PRB_PROBE_DEBUG_PARTS_H
#define PRB_PROBE_DEBUG_PARTS_H

#include <stddef.h>

struct prb_debug_part {
    const char *name;
    const char *source; /* UTF-8, ends with 0 */
    size_t len;         /* bytes, without the 0 */
};
/* The last one has no name. */
extern const struct prb_debug_part prb_debug_parts[];

#endif
