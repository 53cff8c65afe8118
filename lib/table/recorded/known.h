/*
 * Tables that the package `probing` writes, before their first row: they are there, and empty.  Once
 * a row is there, its ring says what columns it has.
 */
#ifndef PRB_TABLE_RECORDED_KNOWN_H
#define PRB_TABLE_RECORDED_KNOWN_H

#include "sql/table.h"

extern const struct prb_table *const prb_known_tables[];
extern const size_t prb_known_count;
/* The doc of the one of this name, or NULL: another table. */
const char *prb_known_doc(const char *name);
/* All of them, where no process is looked at: what one may have.  NULL: out of memory. */
struct prb_table_source *prb_known_source(struct prb_error *err);

#endif
