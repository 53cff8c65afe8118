/* The list of all tables, and the connection that has them. */
#include "table/registry.h"

#include "sql/db.h"

const struct prb_table *const prb_tables[] = {
#define TABLE(symbol) &prb_table_##symbol,
#include "table/tables.def"
#undef TABLE
};

const size_t prb_table_count = sizeof prb_tables / sizeof *prb_tables;

struct prb_db *prb_db_open(struct prb_target *target, struct prb_error *err)
{
    struct prb_db *db = prb_db_open_tables(target, prb_tables, prb_table_count, err);
    if (db)
        db->take_stacks = prb_stacks_take;
    return db;
}
