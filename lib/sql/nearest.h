/* The name that a mistyped one was meant to be. */
#ifndef PRB_SQL_NEAREST_H
#define PRB_SQL_NEAREST_H

/* Edits (insert, delete, change, swap of neighbours) from a to b, case ignored; names longer than
 * 63 bytes are far. */
unsigned prb_edit_distance(const char *a, const char *b);
/* The greatest distance at which a name of this length is still taken for a mistyped one. */
unsigned prb_edit_limit(const char *name);
/* The nearest of names (ends with NULL) within the limit, or NULL. */
const char *prb_nearest(const char *name, const char *const *names);

#endif
