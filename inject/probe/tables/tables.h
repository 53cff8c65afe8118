/* The tables that this process records: rings (ring/ring.h) in a folder that is made with the first
 * of them. */
#ifndef PRB_PROBE_TABLES_TABLES_H
#define PRB_PROBE_TABLES_TABLES_H

#include <stddef.h>

/* As prb_probe_functions of start.h says. */
void *prb_tables_open(const char *name, const char *columns, char *error, size_t cap);
int prb_tables_row(void *table, const void *packed, size_t len);
/* Where they are; "": there is none yet. */
const char *prb_tables_folder(void);
/* Take over probing.max_memory and probing.retention_days. */
void prb_tables_configure(void);
/* No row is written any more. */
void prb_tables_end(void);
/* In a child of fork(2): the tables are its parent's. */
void prb_tables_forked(void);

#endif
