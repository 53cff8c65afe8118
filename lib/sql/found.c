/* Tables that are found at run time: the connection's list follows the source's, between
 * statements. */
#include "sql/db.h"

static bool add_found(struct prb_db *db, struct prb_error *err)
{
    const struct prb_table *const *found;
    size_t count, first = db->constant_count;
    if (!db->source->list(db->source, &found, &count, err))
        return false;
    const struct prb_table **tables = realloc(db->tables, (first + count + 1) * sizeof *tables);
    if (!tables)
        return prb_fail(err, PRB_NOMEM, "out of memory");
    db->tables = tables;
    for (size_t i = 0; i < count; i++)
        tables[first + i] = found[i];
    db->table_count = first + count;
    if (prb_vtab_add(db, first, err))
        return true;
    db->table_count = first;
    return false;
}

bool prb_db_refresh(struct prb_db *db, struct prb_error *err)
{
    if (!db->source || !db->source->changed(db->source))
        return true;
    sqlite3_set_authorizer(db->sqlite, NULL, NULL); /* it allows nothing but reading */
    bool good = prb_vtab_drop(db, db->constant_count, err);
    if (good) {
        db->table_count = db->constant_count;
        good = add_found(db, err);
    }
    prb_db_authorize(db);
    return good;
}
