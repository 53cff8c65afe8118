/* The name that a mistyped one was meant to be: prb_nearest() of probing.h, and what it counts
 * with. */
#ifndef PRB_BASE_NEAREST_H
#define PRB_BASE_NEAREST_H

#include "probing.h"

/* Edits (insert, delete, change, swap of neighbours) from a to b, case ignored; names longer than
 * 63 bytes are far. */
unsigned prb_edit_distance(const char *a, const char *b);
/* The greatest distance at which a name of this length is still taken for a mistyped one. */
unsigned prb_edit_limit(const char *name);

#endif
