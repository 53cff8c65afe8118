/* The list of all tables, and the connections that have them. */
#include "table/registry.h"

#include "inspect/target.h"
#include "sql/db.h"
#include "table/recorded/dump.h"
#include "table/recorded/folder.h"
#include "table/recorded/live.h"

const struct prb_table *const prb_tables[] = {
#define TABLE(symbol) &prb_table_##symbol,
#include "table/tables.inc"
#undef TABLE
};

const size_t prb_table_count = sizeof prb_tables / sizeof *prb_tables;

struct prb_db *prb_db_open(struct prb_target *target, struct prb_error *err)
{
    PRB_AUTO(prb_db)
    struct prb_db *db = prb_db_open_tables(target, prb_tables, prb_table_count, err);
    if (!db)
        return NULL;
    db->take_stacks = prb_stacks_take;
    if (target && prb_proc_exists(target->proc) &&
        !prb_db_add_source(db, prb_recorded_tables_of(target->proc, err), err))
        return NULL;
    if (target && !prb_proc_exists(target->proc) &&
        !prb_db_add_source(db, prb_dumped_tables_of(target->proc, err), err))
        return NULL;
    return PRB_STEAL(db);
}

struct prb_db *prb_db_open_ended(const char *spec, struct prb_error *err)
{
    PRB_AUTO_FD int folder = prb_recorded_folder_ended(spec, err);
    PRB_AUTO(prb_db) struct prb_db *db = folder >= 0 ? prb_db_open(NULL, err) : NULL;
    if (!db || !prb_db_add_source(db, prb_recorded_tables_in(PRB_STEAL_FD(folder), err), err))
        return NULL;
    return PRB_STEAL(db);
}

struct prb_db *prb_db_open_profile(const struct prb_profile *profile, struct prb_error *err)
{
    PRB_AUTO(prb_db) struct prb_db *db = prb_db_open(NULL, err);
    if (db)
        db->profile = profile;
    return PRB_STEAL(db);
}
