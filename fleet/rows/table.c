/* Which tables all ranks have: see rows.h. */
#include <string.h>

#include "fleet/rows/source.h"

#define BYTES_MAX ((size_t)64 << 20) /* of the descriptions of all ranks */

static bool ask_schema(struct prb_rows_source *source, const char *args,
                       struct prb_answers *answers, struct prb_error *err)
{
    if (!source->asker.ask(source->asker.context, "schema", args, answers, err))
        return false;
    prb_answers_sort(answers);
    return true;
}

static bool hash_of(const json_t *answer, char out[17])
{
    const char *hash = json_string_value(json_object_get(answer, "hash"));
    snprintf(out, 17, "%s", hash ? hash : "");
    return strlen(out) == 16;
}

static bool is_known(const struct prb_rows_source *source, const char *hash)
{
    for (size_t i = 0; i < source->schema_count; i++)
        if (strcmp(source->schemas[i].hash, hash) == 0)
            return true;
    return false;
}

/* *changed_out: the ranks, or what they have, are others than before. */
static bool take_hashes(struct prb_rows_source *source, const struct prb_answers *answers,
                        bool *changed_out)
{
    *changed_out = answers->count != source->member_count;
    for (size_t i = 0; i < answers->count; i++) {
        struct prb_schema_member one = {.rank = answers->items[i].rank};
        PRB_AUTO(json_t) json_t *json = json_loads(answers->items[i].data, 0, NULL);
        if (!hash_of(json, one.hash))
            snprintf(one.hash, sizeof one.hash, "-"); /* it answers with nonsense: no table */
        if (i >= source->member_cap &&
            !PRB_GROW(source->members, source->member_cap, source->member_cap))
            return false;
        if (i < source->member_count && source->members[i].rank == one.rank &&
            strcmp(source->members[i].hash, one.hash) == 0)
            continue;
        source->members[i] = one;
        *changed_out = true;
    }
    source->member_count = answers->count;
    return true;
}

static bool lacks_schema(const struct prb_rows_source *source)
{
    for (size_t i = 0; i < source->member_count; i++)
        if (source->members[i].hash[0] != '-' && !is_known(source, source->members[i].hash))
            return true;
    return false;
}

static bool take_schemas(struct prb_rows_source *source, const struct prb_answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        struct prb_schema one;
        PRB_AUTO(json_t) json_t *json = json_loads(answers->items[i].data, 0, NULL);
        json_t *tables = json_object_get(json, "tables");
        if (!hash_of(json, one.hash) || !json_is_array(tables) || is_known(source, one.hash))
            continue;
        if (!PRB_GROW(source->schemas, source->schema_count, source->schema_cap))
            return false;
        one.tables = json_incref(tables);
        source->schemas[source->schema_count++] = one;
    }
    return true;
}

/* The hashes of all ranks, and the tables of hashes that are new. */
static bool look(struct prb_rows_source *source, bool *changed_out, struct prb_error *err)
{
    PRB_AUTO(prb_answers) struct prb_answers hashes = {.bytes_max = BYTES_MAX};
    PRB_AUTO(prb_answers) struct prb_answers columns = {.bytes_max = BYTES_MAX};
    if (!ask_schema(source, "{}", &hashes, err))
        return false;
    if (!take_hashes(source, &hashes, changed_out))
        return prb_nomem(err);
    if (!lacks_schema(source))
        return true;
    return ask_schema(source, "{\"columns\": true}", &columns, err) &&
           (take_schemas(source, &columns) || prb_nomem(err));
}

static bool changed(struct prb_table_source *base)
{
    struct prb_rows_source *source = (struct prb_rows_source *)base;
    bool any = true;
    source->error = (struct prb_error){0};
    return !look(source, &any, &source->error) || any;
}

static void forget_tables(struct prb_rows_source *source)
{
    for (size_t i = 0; i < source->table_count; i++) {
        free(source->tables[i]->columns);
        free(source->tables[i]);
    }
    source->table_count = 0;
    prb_arena_deinit(&source->texts);
    source->note[0] = '\0';
}

/* Of the ranks' schemas, in the order of the first rank that has each. */
static const struct prb_schema *schema_of(const struct prb_rows_source *source, size_t member)
{
    for (size_t i = 0; i < member; i++)
        if (strcmp(source->members[i].hash, source->members[member].hash) == 0)
            return NULL;
    for (size_t i = 0; i < source->schema_count; i++)
        if (strcmp(source->schemas[i].hash, source->members[member].hash) == 0)
            return &source->schemas[i];
    return NULL;
}

static bool list(struct prb_table_source *base, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err)
{
    struct prb_rows_source *source = (struct prb_rows_source *)base;
    if (source->error.code) {
        if (err)
            *err = source->error;
        return false;
    }
    forget_tables(source);
    for (size_t i = 0; i < source->member_count; i++) {
        const struct prb_schema *schema = schema_of(source, i);
        for (size_t k = 0; schema && k < json_array_size(schema->tables); k++)
            if (!prb_tables_unite(source, json_array_get(schema->tables, k)))
                return prb_nomem(err);
    }
    for (size_t i = 0; i < source->table_count; i++)
        if (!prb_united_finish(source->tables[i]))
            return prb_nomem(err);
    *out = (const struct prb_table *const *)source->tables;
    *count_out = source->table_count;
    return true;
}

static const char *note(struct prb_table_source *base)
{
    struct prb_rows_source *source = (struct prb_rows_source *)base;
    return source->note[0] ? source->note : NULL;
}

/* ---- making ---- */

static void free_source(struct prb_table_source *base)
{
    struct prb_rows_source *source = (struct prb_rows_source *)base;
    prb_rows_forget(source);
    forget_tables(source);
    for (size_t i = 0; i < source->schema_count; i++)
        json_decref(source->schemas[i].tables);
    free(source->schemas);
    free(source->members);
    free(source->tables);
    if (source->asker.free)
        source->asker.free(source->asker.context);
    free(source);
}

struct prb_table_source *prb_rows_source(const struct prb_rows_asker *asker, struct prb_error *err)
{
    struct prb_rows_source *source = calloc(1, sizeof *source);
    if (!source) {
        if (asker->free)
            asker->free(asker->context);
        return PRB_NULL(prb_nomem(err));
    }
    source->asker = *asker;
    source->source = (struct prb_table_source){.changed = changed,
                                               .list = list,
                                               .free = free_source,
                                               .note = note,
                                               .fetch = prb_rows_fetch,
                                               .plan = prb_rows_plan};
    return &source->source;
}
