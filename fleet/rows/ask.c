/* What is asked of ranks, as JSON: see ask.h. */
#include "fleet/rows/ask.h"

#include <string.h>

#define TABLES_MAX 256
#define SETS_MAX 4096
#define TERMS_MAX 256

void prb_ask_deinit(struct prb_ask *ask)
{
    for (size_t i = 0; i < ask->count; i++) {
        struct prb_asked *one = &ask->items[i];
        for (size_t k = 0; k < PRB_ARGUMENTS_MAX; k++)
            if (one->arguments[k].given)
                free((char *)one->arguments[k].value.text);
        for (size_t k = 0; k < one->set_count && !one->sets_borrow; k++)
            prb_term_set_deinit(&one->sets[k]);
        free(one->sets);
        free(one->columns);
    }
    free(ask->items);
    *ask = (struct prb_ask){0};
}

static const struct {
    const char *name;
    unsigned bit;
} needs[] = {{"locals", PRB_NEED_LOCALS}, {"native", PRB_NEED_NATIVE}};

json_t *prb_needs_json(unsigned bits)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (bits & needs[i].bit)
            json_array_append_new(list, json_string(needs[i].name));
    return list;
}

unsigned prb_needs_parse(const json_t *list)
{
    unsigned bits = 0;
    for (size_t i = 0; i < json_array_size(list) && i < 16; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        for (size_t k = 0; name && k < sizeof needs / sizeof *needs; k++)
            if (strcmp(name, needs[k].name) == 0)
                bits |= needs[k].bit;
    }
    return bits;
}

/* ---- to JSON ---- */

static json_t *value_json(const struct prb_value *value)
{
    switch (value->type) {
    case PRB_INTEGER:
        return json_integer(value->integer);
    case PRB_REAL:
        return json_real(value->real);
    case PRB_TEXT:
        return json_stringn(value->text, value->length);
    default:
        return json_null();
    }
}

static json_t *arguments_json(const struct prb_asked *asked)
{
    json_t *object = json_object();
    const struct prb_column *first = &asked->table->columns[prb_table_visible(asked->table)];
    for (size_t i = 0; i < PRB_ARGUMENTS_MAX; i++)
        if (asked->arguments[i].given)
            json_object_set_new(object, first[i].name, value_json(&asked->arguments[i].value));
    return object;
}

typedef bool own_fn(const struct prb_table *table, size_t column);

static json_t *set_json(const struct prb_asked *asked, const struct prb_term_set *set, own_fn *own)
{
    json_t *terms = json_array();
    for (size_t i = 0; i < set->count; i++) {
        const struct prb_term *term = &set->terms[i];
        if (!own(asked->table, term->column) || term->op == PRB_TERM_IN)
            continue;
        json_t *one = json_array();
        json_array_append_new(one, json_string(asked->table->columns[term->column].name));
        json_array_append_new(one, json_string(prb_term_names[term->op]));
        if (term->op != PRB_TERM_IS_NULL)
            json_array_append_new(one, value_json(&term->value));
        json_array_append_new(terms, one);
    }
    return terms;
}

/* NULL: all rows, which a list without terms says, too. */
static json_t *where_json(const struct prb_asked *asked, own_fn *own)
{
    json_t *where = json_array();
    for (size_t i = 0; i < asked->set_count; i++) {
        json_t *terms = set_json(asked, &asked->sets[i], own);
        bool all = json_array_size(terms) == 0;
        json_array_append_new(where, terms);
        if (all) {
            json_decref(where);
            return NULL;
        }
    }
    if (asked->set_count)
        return where;
    json_decref(where);
    return NULL;
}

static void add_order(json_t *table, const struct prb_asked *asked, own_fn *own)
{
    json_t *order = json_array();
    for (size_t i = 0; i < asked->order_count; i++)
        if (own(asked->table, (size_t)asked->order[i].column))
            json_array_append_new(
                order, json_pack("[s, s]", asked->table->columns[asked->order[i].column].name,
                                 asked->order[i].descending ? "desc" : "asc"));
    json_object_set_new(table, "order", order);
}

static json_t *table_json(const struct prb_asked *asked, own_fn *own)
{
    json_t *columns = json_array(), *where = where_json(asked, own);
    for (size_t i = 0; i < asked->column_count; i++)
        json_array_append_new(columns, json_string(asked->table->columns[asked->columns[i]].name));
    json_t *table =
        json_pack("{s:s, s:s, s:o, s:o}", "schema", asked->table->schema, "name",
                  asked->table->name, "arguments", arguments_json(asked), "columns", columns);
    if (where)
        json_object_set_new(table, "where", where);
    if (asked->limit >= 0) {
        json_object_set_new(table, "limit", json_integer(asked->limit));
        add_order(table, asked, own);
    }
    return table;
}

json_t *prb_ask_json(const struct prb_ask *ask, const struct prb_settings *settings, own_fn *own)
{
    json_t *tables = json_array();
    for (size_t i = 0; i < ask->count; i++)
        json_array_append_new(tables, table_json(&ask->items[i], own));
    return json_pack("{s:{s:b, s:b, s:I}, s:o, s:b, s:o}", "settings", "reveal_secrets",
                     settings->reveal_secrets, "native_lines", settings->native_lines, "repr_limit",
                     (json_int_t)settings->repr_limit, "needs", prb_needs_json(ask->needs),
                     "grouped", ask->grouped, "tables", tables);
}

/* ---- from JSON ---- */

static bool corrupt(struct prb_error *err)
{
    return prb_fail(err, PRB_CORRUPT, "what is asked of the tables cannot be parsed");
}

/* Borrowed from the JSON. */
static bool value_parse(const json_t *json, struct prb_value *out)
{
    *out = (struct prb_value){.type = PRB_NULL_VALUE};
    if (json_is_integer(json))
        *out = (struct prb_value){.type = PRB_INTEGER, .integer = json_integer_value(json)};
    else if (json_is_real(json))
        *out = (struct prb_value){.type = PRB_REAL, .real = json_real_value(json)};
    else if (json_is_string(json))
        *out = (struct prb_value){
            .type = PRB_TEXT, .text = json_string_value(json), .length = json_string_length(json)};
    else
        return json_is_null(json);
    return true;
}

static bool is_term_op(const char *name, enum prb_term_op *out)
{
    for (int op = 0; name && op < PRB_TERM_IN; op++)
        if (strcmp(name, prb_term_names[op]) == 0) {
            *out = (enum prb_term_op)op;
            return true;
        }
    return false;
}

static size_t column_of(const struct prb_table *table, const json_t *name)
{
    int column = json_is_string(name) ? prb_table_column(table, json_string_value(name)) : -1;
    bool argument = column >= 0 && table->columns[column].hidden && !table->columns[column].aside;
    return column < 0 || argument ? SIZE_MAX : (size_t)column;
}

static bool set_parse(const json_t *terms, const struct prb_table *table, struct prb_term_set *out,
                      struct prb_error *err)
{
    if (!json_is_array(terms) || json_array_size(terms) > TERMS_MAX)
        return corrupt(err);
    for (size_t i = 0; i < json_array_size(terms); i++) {
        const json_t *one = json_array_get(terms, i);
        struct prb_term term = {.column = column_of(table, json_array_get(one, 0))};
        if (!json_is_string(json_array_get(one, 0)) ||
            !is_term_op(json_string_value(json_array_get(one, 1)), &term.op))
            return corrupt(err);
        if (term.op != PRB_TERM_IS_NULL && !value_parse(json_array_get(one, 2), &term.value))
            return corrupt(err);
        if (!prb_term_set_add(out, &term))
            return prb_nomem(err);
    }
    return true;
}

static bool where_parse(const json_t *where, struct prb_asked *out, struct prb_error *err)
{
    size_t count = json_array_size(where);
    if (!where)
        return true;
    if (!json_is_array(where) || !count || count > SETS_MAX)
        return corrupt(err);
    if (!(out->sets = calloc(count, sizeof *out->sets)))
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++)
        if (!set_parse(json_array_get(where, i), out->table, &out->sets[out->set_count++], err))
            return false;
    return true;
}

static bool arguments_parse(const json_t *arguments, struct prb_asked *out, struct prb_error *err)
{
    size_t first = prb_table_visible(out->table), count = prb_table_arguments(out->table);
    for (size_t i = 0; i < count; i++) {
        struct prb_value value;
        const json_t *one = json_object_get(arguments, out->table->columns[first + i].name);
        if (!one)
            continue;
        if (!value_parse(one, &value))
            return corrupt(err);
        if (!prb_value_copy(&value, &out->arguments[i].value))
            return prb_nomem(err);
        out->arguments[i].given = true;
    }
    return true;
}

static bool columns_parse(const json_t *columns, struct prb_asked *out, struct prb_error *err)
{
    size_t count = json_array_size(columns);
    if (!json_is_array(columns) || count > PRB_ASKED_COLUMNS_MAX)
        return corrupt(err);
    if (!(out->columns = calloc(count + 1, sizeof *out->columns)))
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++) {
        size_t column = column_of(out->table, json_array_get(columns, i));
        out->columns[out->column_count++] = column == SIZE_MAX ? -1 : (int)column;
    }
    return true;
}

static bool limit_parse(const json_t *table, struct prb_asked *out, struct prb_error *err)
{
    const json_t *limit = json_object_get(table, "limit"), *order = json_object_get(table, "order");
    out->limit = -1;
    if (!limit)
        return true;
    if (!json_is_integer(limit) || json_integer_value(limit) < 0 ||
        json_array_size(order) > PRB_PUSHED_ORDER_MAX)
        return corrupt(err);
    out->limit = json_integer_value(limit);
    for (size_t i = 0; i < json_array_size(order); i++) {
        const json_t *one = json_array_get(order, i);
        const char *direction = json_string_value(json_array_get(one, 1));
        size_t column = column_of(out->table, json_array_get(one, 0));
        if (!direction)
            return corrupt(err);
        out->order[out->order_count].column = column == SIZE_MAX ? -1 : (int)column;
        out->order[out->order_count++].descending = strcmp(direction, "desc") == 0;
    }
    return true;
}

static int find_table(const struct prb_db *db, const json_t *table)
{
    const char *schema = json_string_value(json_object_get(table, "schema"));
    const char *name = json_string_value(json_object_get(table, "name"));
    int index = schema && name ? prb_db_find_table(db, schema, name) : -1;
    return index >= 0 && !prb_table_is_schema(db->tables[index]) ? index : -1;
}

static bool table_parse(const json_t *table, const struct prb_db *db, struct prb_asked *out,
                        struct prb_error *err)
{
    int index = find_table(db, table);
    if (index < 0)
        return json_is_object(table) || corrupt(err);
    out->index = (size_t)index;
    out->table = db->tables[index];
    return arguments_parse(json_object_get(table, "arguments"), out, err) &&
           columns_parse(json_object_get(table, "columns"), out, err) &&
           where_parse(json_object_get(table, "where"), out, err) && limit_parse(table, out, err);
}

static void settings_parse(const json_t *json, struct prb_settings *settings)
{
    json_int_t limit = json_integer_value(json_object_get(json, "repr_limit"));
    settings->reveal_secrets = json_is_true(json_object_get(json, "reveal_secrets"));
    settings->native_lines = json_is_true(json_object_get(json, "native_lines"));
    if (limit >= 16 && limit <= 1 << 20)
        settings->repr_limit = limit;
}

bool prb_ask_parse(const json_t *args, const struct prb_db *db, struct prb_ask *out,
                   struct prb_settings *settings, struct prb_error *err)
{
    const json_t *tables = json_object_get(args, "tables");
    size_t count = json_array_size(tables);
    if (!json_is_array(tables) || count > TABLES_MAX)
        return corrupt(err);
    if (!(out->items = calloc(count + 1, sizeof *out->items)))
        return prb_nomem(err);
    out->needs = prb_needs_parse(json_object_get(args, "needs"));
    out->grouped = json_is_true(json_object_get(args, "grouped"));
    settings_parse(json_object_get(args, "settings"), settings);
    for (size_t i = 0; i < count; i++)
        if (!table_parse(json_array_get(tables, i), db, &out->items[out->count++], err))
            return false;
    return true;
}
