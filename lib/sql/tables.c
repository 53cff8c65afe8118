/* The tables of a connection: the constant ones, then those of its sources, whose list is renewed
 * between statements. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sql/db.h"

int prb_db_find_table(const struct prb_db *db, const char *schema, const char *name)
{
    for (size_t i = 0; i < db->table_count; i++)
        if (strcasecmp(db->tables[i]->name, name) == 0 &&
            (!schema || !*schema || strcasecmp(db->tables[i]->schema, schema) == 0))
            return (int)i;
    return -1;
}

bool prb_table_is_schema(const struct prb_table *table)
{
    return strcmp(table->schema, "information_schema") == 0;
}

bool prb_db_add_source(struct prb_db *db, struct prb_table_source *source, struct prb_error *err)
{
    if (!source)
        return false;
    struct prb_table_source **sources =
        reallocarray(db->sources, db->source_count + 1, sizeof *sources);
    if (!sources) {
        source->free(source);
        return prb_nomem(err);
    }
    db->sources = sources;
    db->fetches = db->fetches || source->fetch;
    sources[db->source_count++] = source;
    return true;
}

static bool list_source(struct prb_db *db, struct prb_table_source *source, struct prb_error *err)
{
    const struct prb_table *const *found;
    size_t count;
    if (!source->list(source, &found, &count, err))
        return false;
    const struct prb_table **tables =
        realloc(db->tables, (db->table_count + count + 1) * sizeof *tables);
    if (!tables)
        return prb_nomem(err);
    db->tables = tables;
    for (size_t i = 0; i < count; i++)
        tables[db->table_count++] = found[i];
    return true;
}

static bool list_sources(struct prb_db *db, struct prb_error *err)
{
    size_t first = db->constant_count;
    bool good = true;
    for (size_t i = 0; good && i < db->source_count; i++) {
        struct prb_table_source *source = db->sources[i];
        good = list_source(db, source, err);
        const char *note = good && source->note ? source->note(source) : NULL;
        if (note)
            prb_db_warn(db, "%s", note);
    }
    if (good && prb_vtab_attach(db, first, err))
        return true;
    db->table_count = first;
    return false;
}

bool prb_db_refresh(struct prb_db *db, struct prb_error *err)
{
    bool changed = false;
    for (size_t i = 0; i < db->source_count; i++)
        changed = db->sources[i]->changed(db->sources[i]) || changed;
    if (!changed)
        return true;
    sqlite3_set_authorizer(db->sqlite, NULL, NULL); /* it allows nothing but reading */
    bool good = prb_vtab_drop(db, db->constant_count, err);
    if (good) {
        db->table_count = db->constant_count;
        good = list_sources(db, err);
    }
    prb_db_authorize(db);
    return good;
}
