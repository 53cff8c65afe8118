/* One table of what the ranks have under its name. */
#include <string.h>
#include <strings.h>

#include "fleet/rows/source.h"

#define SCHEMAS_MAX 9 /* that SQLite attaches, beside "main" */
#define TABLES_MAX 2000
#define COLUMNS_MAX 400
#define DOC_MAX 2000

static const struct prb_column added_columns[PRB_ADDED] = {
    [PRB_ADDED_RANK] = {"rank", PRB_INTEGER, "", "of the process in its job", .of_rank = true},
    [PRB_ADDED_HOST] = {"host", PRB_TEXT, "", "the node that the rank runs on"},
    [PRB_ADDED_HIDDEN_RANK] = {"_rank", PRB_INTEGER, "", "rank", .hidden = true, .aside = true,
                               .of_rank = true},
    [PRB_ADDED_HIDDEN_HOST] = {"_host", PRB_TEXT, "", "host", .hidden = true, .aside = true},
    [PRB_ADDED_LOCAL_RANK] = {"_local_rank", PRB_INTEGER, "", "LOCAL_RANK", .hidden = true,
                              .aside = true},
    [PRB_ADDED_NODE_RANK] = {"_node_rank", PRB_INTEGER, "", "number of its host", .hidden = true,
                             .aside = true},
    [PRB_ADDED_ROLE] = {"_role", PRB_TEXT, "", "ROLE_NAME", .hidden = true, .aside = true},
    [PRB_ADDED_ADDRESS] = {"_addr", PRB_TEXT, "", "host", .hidden = true, .aside = true},
};

static bool is_name(const char *name)
{
    return name && *name && strlen(name) < PRB_TABLE_NAME_MAX &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

static const char *keep(struct prb_rows_source *source, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return prb_arena_strndup(&source->texts, text ? text : "", text ? strnlen(text, DOC_MAX) : 0);
}

static enum prb_type type_of(const json_t *column)
{
    const char *name = json_string_value(json_object_get(column, "type"));
    for (int type = PRB_INTEGER; name && type <= PRB_BLOB; type++)
        if (strcmp(name, prb_type_name((enum prb_type)type)) == 0)
            return (enum prb_type)type;
    return PRB_NULL_VALUE;
}

static size_t count_columns(const struct prb_united *united)
{
    size_t count = 0;
    while (united->columns && united->columns[count].name)
        count++;
    return count;
}

static bool insert(struct prb_united *united, size_t at, const struct prb_column *column)
{
    size_t count = count_columns(united);
    while (united->column_cap < count + 2)
        if (!PRB_GROW(united->columns, united->column_cap, united->column_cap))
            return false;
    memmove(&united->columns[at + 1], &united->columns[at], (count - at) * sizeof *united->columns);
    united->columns[at] = *column;
    united->columns[count + 1] = (struct prb_column){0};
    united->table.columns = united->columns;
    return true;
}

/* Visible columns stand before the arguments. */
static bool add_column(struct prb_rows_source *source, struct prb_united *united,
                       const json_t *json)
{
    struct prb_column column = {.type = type_of(json)};
    const char *name = json_string_value(json_object_get(json, "name"));
    int there = is_name(name) && united->columns ? prb_table_column(&united->table, name) : -1;
    column.hidden = json_is_true(json_object_get(json, "hidden"));
    column.of_rank = column.type == PRB_INTEGER && json_is_true(json_object_get(json, "of_rank"));
    if (!is_name(name) || count_columns(united) >= COLUMNS_MAX)
        return true;
    if (there >= 0) {
        struct prb_column *known = &united->columns[there];
        if (known->type != column.type)
            known->type = PRB_NULL_VALUE; /* ranks differ: no affinity */
        known->of_rank = known->of_rank && column.of_rank;
        return true;
    }
    column.name = keep(source, json, "name");
    column.unit = keep(source, json, "unit");
    column.doc = keep(source, json, "doc");
    column.needs = prb_needs_parse(json_object_get(json, "needs"));
    column.asks = prb_needs_parse(json_object_get(json, "asks"));
    if (json_object_get(json, "unless"))
        column.unless = keep(source, json, "unless");
    size_t at = united->columns ? prb_table_visible(&united->table) : 0;
    size_t arguments = count_columns(united) - at;
    if (column.hidden && arguments >= PRB_ARGUMENTS_MAX)
        return true;
    return column.name && column.unit && column.doc &&
           insert(united, column.hidden ? at + arguments : at, &column);
}

static struct prb_united *find(const struct prb_rows_source *source, const char *schema,
                               const char *name)
{
    for (size_t i = 0; i < source->table_count; i++)
        if (strcasecmp(source->tables[i]->table.schema, schema) == 0 &&
            strcasecmp(source->tables[i]->table.name, name) == 0)
            return source->tables[i];
    return NULL;
}

static struct prb_united *add_table(struct prb_rows_source *source, const json_t *json)
{
    struct prb_united *united = calloc(1, sizeof *united);
    if (!united || !PRB_GROW(source->tables, source->table_count, source->table_cap)) {
        free(united);
        return NULL;
    }
    source->tables[source->table_count++] = united;
    united->table = (struct prb_table){.schema = keep(source, json, "schema"),
                                       .name = keep(source, json, "name"),
                                       .doc = keep(source, json, "doc"),
                                       .needs = prb_needs_parse(json_object_get(json, "needs")),
                                       .fetched = true,
                                       .fill = prb_united_fill};
    return united->table.schema && united->table.name && united->table.doc ? united : NULL;
}

/* Each schema is a database to SQLite, of which there may be few. */
static bool is_room(const struct prb_rows_source *source, const char *schema)
{
    size_t others = 0;
    for (size_t i = 0; i < source->table_count; i++) {
        const char *one = source->tables[i]->table.schema;
        size_t k = 0;
        if (strcasecmp(one, schema) == 0)
            return true;
        while (k < i && strcasecmp(source->tables[k]->table.schema, one) != 0)
            k++;
        others += k == i && strcasecmp(one, "main") != 0;
    }
    return strcasecmp(schema, "main") == 0 || others + 1 < SCHEMAS_MAX;
}

bool prb_tables_unite(struct prb_rows_source *source, const json_t *json)
{
    const char *schema = json_string_value(json_object_get(json, "schema"));
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *columns = json_object_get(json, "columns");
    const char *own = source->asker.own;
    if (own && name && schema && strcasecmp(name, own) == 0 && strcasecmp(schema, "main") == 0)
        return true;
    if (!is_name(schema) || !is_name(name) || strcasecmp(schema, "information_schema") == 0 ||
        strcasecmp(schema, "cluster") == 0 || strcasecmp(schema, "temp") == 0 ||
        !is_room(source, schema) || source->table_count >= TABLES_MAX ||
        !json_array_size(columns)) {
        snprintf(source->note, sizeof source->note,
                 "a table of a rank is left out: its name, or how many there are");
        return true;
    }
    struct prb_united *united = find(source, schema, name);
    if (!united && !(united = add_table(source, json)))
        return false;
    for (size_t i = 0; i < json_array_size(columns); i++)
        if (!add_column(source, united, json_array_get(columns, i)))
            return false;
    return true;
}

/* Behind the visible columns, or behind all. */
bool prb_united_finish(struct prb_united *united)
{
    for (int i = 0; i < PRB_ADDED; i++)
        united->added[i] = -1;
    for (int i = 0; i < PRB_ADDED; i++) {
        const struct prb_column *column = &added_columns[i];
        size_t at = column->aside ? count_columns(united) : prb_table_visible(&united->table);
        if (prb_table_column(&united->table, column->name) >= 0)
            continue;
        if (!insert(united, at, column))
            return false;
        united->added[i] = (int)at;
    }
    return true;
}
