/* The list of all tables, and the connections that have them. */
#include "table/registry.h"

#include "base/file.h"
#include "inspect/target.h"
#include "plugin/plugin.h"
#include "sql/several.h"
#include "store/folder.h"
#include "table/recorded/dump.h"
#include "table/recorded/folder.h"
#include "table/recorded/known.h"
#include "table/recorded/live.h"

const struct prb_table *const prb_tables[] = {
#define TABLE(symbol) &prb_table_##symbol,
#include "table/tables.inc"
#undef TABLE
};

const size_t prb_table_count = sizeof prb_tables / sizeof *prb_tables;

static bool add_recorded(struct prb_db *db, struct prb_table_source *source, struct prb_error *err)
{
    db->recorded = source;
    return prb_db_add_source(db, source, err);
}

static struct prb_stacks *take_stacks(struct prb_target *target,
                                      const struct prb_stack_options *options,
                                      struct prb_error *err)
{
    if (!target)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "there is no process to take stacks of"));
    return prb_stacks_take(target, options, err);
}

/* What a target has; without one, no table of a process has rows. */
static struct prb_db *open_target(struct prb_target *target, struct prb_error *err)
{
    PRB_AUTO(prb_db)
    struct prb_db *db = prb_db_open_tables(target, prb_tables, prb_table_count, err);
    if (!db)
        return NULL;
    db->take_stacks = take_stacks;
    if (!prb_db_add_source(db, prb_plugin_tables(prb_tables, prb_table_count, err), err))
        return NULL;
    if (target && prb_proc_exists(target->proc) &&
        !add_recorded(db, prb_recorded_tables_of(target->proc, err), err))
        return NULL;
    if (target && !prb_proc_exists(target->proc) &&
        !add_recorded(db, prb_dumped_tables_of(target->proc, err), err))
        return NULL;
    return PRB_STEAL(db);
}

struct prb_db *prb_db_open(struct prb_target *target, struct prb_error *err)
{
    PRB_AUTO(prb_db) struct prb_db *db = open_target(target, err);
    if (db && !target && !prb_db_add_source(db, prb_known_source(err), err))
        return NULL;
    return PRB_STEAL(db);
}

struct prb_db *prb_db_open_schema(struct prb_error *err)
{
    const struct prb_table *tables[sizeof prb_tables / sizeof *prb_tables];
    size_t count = 0;
    for (size_t i = 0; i < prb_table_count; i++)
        if (prb_table_is_schema(prb_tables[i]))
            tables[count++] = prb_tables[i];
    return prb_db_open_tables(NULL, tables, count, err);
}

struct prb_db *prb_db_open_processes(const struct prb_db_process *processes, size_t count,
                                     struct prb_error *err)
{
    PRB_AUTO(prb_several) struct prb_several *several = prb_several_new(count, err);
    PRB_AUTO(prb_db) struct prb_db *db = several ? prb_db_open_schema(err) : NULL;
    for (size_t i = 0; db && i < count; i++) {
        struct prb_db *one = prb_db_open(processes[i].target, err);
        if (!one)
            return NULL;
        prb_several_add(several, one, processes[i].pid, processes[i].rank);
    }
    if (!db || !prb_db_add_source(db, prb_several_source(PRB_STEAL(several)), err))
        return NULL;
    return PRB_STEAL(db);
}

struct prb_db *prb_db_open_ended(const char *spec, struct prb_error *err)
{
    PRB_AUTO_FD int folder = prb_recorded_folder_ended(spec, err);
    PRB_AUTO(prb_db) struct prb_db *db = folder >= 0 ? open_target(NULL, err) : NULL;
    if (!db || !add_recorded(db, prb_recorded_tables_in(PRB_STEAL_FD(folder), err), err))
        return NULL;
    db->ended = true;
    return PRB_STEAL(db);
}

struct prb_db *prb_db_open_stored(const char *job, char note[PRB_NOTE_MAX], struct prb_error *err)
{
    int64_t process = 0;
    size_t others = 0;
    struct prb_store_file *store = prb_store_is(job) ? prb_store_open(job, false, err)
                                                     : prb_store_find(job, &process, &others, err);
    *note = '\0';
    if (!store)
        return NULL;
    if (others)
        snprintf(note, PRB_NOTE_MAX, "the newest of %zu: %.100s", others + 1,
                 prb_base_name(prb_store_path(store)));
    PRB_AUTO(prb_db) struct prb_db *db = open_target(NULL, err);
    if (!db) {
        prb_store_close(store);
        return NULL;
    }
    if (!add_recorded(db, prb_recorded_tables_stored(store, process, err), err))
        return NULL;
    db->ended = true;
    return PRB_STEAL(db);
}

struct prb_db *prb_db_open_profile(const struct prb_profile *profile, struct prb_error *err)
{
    PRB_AUTO(prb_db) struct prb_db *db = open_target(NULL, err);
    if (db)
        db->profile = profile;
    return PRB_STEAL(db);
}
