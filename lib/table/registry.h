/* The list of all tables. */
#ifndef PRB_TABLE_REGISTRY_H
#define PRB_TABLE_REGISTRY_H

#include "sql/table.h"

#define TABLE(symbol) extern const struct prb_table prb_table_##symbol;
#include "table/tables.inc"
#undef TABLE

extern const struct prb_table *const prb_tables[];
extern const size_t prb_table_count;

/* A connection with the tables of information_schema alone, for those of a source. */
struct prb_db *prb_db_open_schema(struct prb_error *err);

#endif
