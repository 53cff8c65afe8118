/* A rank's side of "schema": which tables it has, and a hash that is the same where these are. */
#include <string.h>

#include "base/index.h"
#include "fleet/rows/ask.h"
#include "fleet/rows/rows.h"

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return prb_hash_words(hash, text ? prb_hash_bytes(text, strlen(text)) : 1);
}

static uint64_t hash_table(uint64_t hash, const struct prb_table *table)
{
    hash = hash_text(hash_text(hash_text(hash, table->schema), table->name), table->doc);
    hash = prb_hash_words(hash, table->needs);
    for (const struct prb_column *column = table->columns; column->name; column++) {
        uint64_t bits = (uint64_t)column->type << 32 | column->needs << 16 | column->asks << 8 |
                        (column->hidden ? 1u : 0u) | (column->of_rank ? 2u : 0u);
        hash = hash_text(hash_text(hash, column->name), column->unit);
        hash = prb_hash_words(hash_text(hash_text(hash, column->doc), column->unless), bits);
    }
    return hash;
}

static bool is_shown(const struct prb_db *db, size_t i)
{
    return !prb_table_is_schema(db->tables[i]);
}

static json_t *column_json(const struct prb_column *column)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:s}", "name", column->name, "type",
                             prb_type_name(column->type), "unit", column->unit, "doc", column->doc);
    if (column->hidden)
        json_object_set_new(json, "hidden", json_true());
    if (column->needs)
        json_object_set_new(json, "needs", prb_needs_json(column->needs));
    if (column->asks)
        json_object_set_new(json, "asks", prb_needs_json(column->asks));
    if (column->of_rank)
        json_object_set_new(json, "of_rank", json_true());
    if (column->unless)
        json_object_set_new(json, "unless", json_string(column->unless));
    return json;
}

static json_t *table_json(const struct prb_table *table)
{
    json_t *columns = json_array();
    for (const struct prb_column *column = table->columns; column->name; column++)
        if (!column->aside)
            json_array_append_new(columns, column_json(column));
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", table->schema, "name", table->name,
                     "doc", table->doc, "needs", prb_needs_json(table->needs), "columns", columns);
}

bool prb_schema_answer(struct prb_db *db, const json_t *args, struct prb_buf *out,
                       struct prb_error *err)
{
    if (!prb_db_refresh(db, err))
        return false;
    uint64_t hash = 0;
    char text[17];
    for (size_t i = 0; i < db->table_count; i++)
        if (is_shown(db, i))
            hash = hash_table(hash, db->tables[i]);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    PRB_AUTO(json_t) json_t *answer = json_pack("{s:s}", "hash", text);
    if (json_is_true(json_object_get(args, "columns"))) {
        json_t *tables = json_array();
        for (size_t i = 0; i < db->table_count; i++)
            if (is_shown(db, i))
                json_array_append_new(tables, table_json(db->tables[i]));
        json_object_set_new(answer, "tables", tables);
    }
    PRB_AUTO_FREE char *dumped = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    prb_buf_adds(out, dumped ? dumped : "");
    return (dumped && prb_buf_ok(out)) || prb_nomem(err);
}
