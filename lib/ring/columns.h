/* Names of tables and columns. */
#ifndef PRB_RING_COLUMNS_H
#define PRB_RING_COLUMNS_H

#include "base/cleanup.h"
#include "ring/ring.h"

/* Whether text is a name: a letter or _, then those and digits, at most PRB_RING_NAME_MAX. */
bool prb_ring_is_name(const char *text);
/* The same, of a table; else USAGE. */
bool prb_ring_table_name(const char *name, struct prb_error *err);
/* One to PRB_RING_COLUMNS_MAX columns of known types with names of their own, case ignored; else
 * USAGE. */
bool prb_ring_columns_check(const struct prb_ring_column *columns, size_t count,
                            struct prb_error *err);
/* Columns as text (prb_ring_table_parse): cut in place, and out borrows from it.  USAGE. */
bool prb_ring_columns_parse(char *text, struct prb_ring_column out[PRB_RING_COLUMNS_MAX],
                            size_t *count_out, struct prb_error *err);
const char *prb_ring_type_name(enum prb_ring_type type);
/* The type of that name; false: there is none. */
bool prb_ring_type_named(const char *name, enum prb_ring_type *out);
/* Copy as much of text as fits, cut at a character's end; NULL is "". */
void prb_ring_cut(char *out, size_t cap, const char *text);
/* Bytes of text[0..len) that fit in max without cutting a character (what is not UTF-8 is cut
 * anywhere). */
size_t prb_ring_cut_length(const char *text, size_t len, size_t max);

#endif
