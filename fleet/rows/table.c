/* The tables of all ranks, and the rows that one statement fetched of them: see rows.h. */
#include <string.h>
#include <strings.h>

#include "fleet/rows/ask.h"
#include "fleet/rows/pack.h"
#include "fleet/rows/rows.h"

#define ROWS_MAX 10000000
#define BYTES_MAX ((size_t)1 << 30)
#define SCHEMAS_MAX 9 /* that SQLite attaches, beside "main" */
#define TABLES_MAX 2000
#define COLUMNS_MAX 400
#define NAME_MAX_ 128
#define DOC_MAX 2000

/* What the asker adds to each table. */
enum added { RANK, HOST, HIDDEN_RANK, HIDDEN_HOST, LOCAL_RANK, NODE_RANK, ROLE, ADDRESS, ADDED };
static const struct prb_column added_columns[ADDED] = {
    [RANK] = {"rank", PRB_INTEGER, "", "of the process in its job"},
    [HOST] = {"host", PRB_TEXT, "", "the node that the rank runs on"},
    [HIDDEN_RANK] = {"_rank", PRB_INTEGER, "", "rank", .hidden = true, .aside = true},
    [HIDDEN_HOST] = {"_host", PRB_TEXT, "", "host", .hidden = true, .aside = true},
    [LOCAL_RANK] = {"_local_rank", PRB_INTEGER, "", "not known", .hidden = true, .aside = true},
    [NODE_RANK] = {"_node_rank", PRB_INTEGER, "", "not known", .hidden = true, .aside = true},
    [ROLE] = {"_role", PRB_TEXT, "", "not known", .hidden = true, .aside = true},
    [ADDRESS] = {"_addr", PRB_TEXT, "", "not known", .hidden = true, .aside = true},
};

struct united {
    struct prb_table table; /* first */
    struct prb_column *columns;
    size_t column_cap;
    int added[ADDED]; /* the column of each, -1: the table has one of its own */
};

/* The tables of the ranks that have the same ones. */
struct schema {
    char hash[17];
    json_t *tables;
};

struct member {
    int rank;
    char hash[17];
};

struct rows_source {
    struct prb_table_source source; /* first */
    struct prb_rows_asker asker;
    struct schema *schemas;
    size_t schema_count, schema_cap;
    struct member *members; /* as of the last question, by rank */
    size_t member_count, member_cap;
    struct prb_error error; /* of the last question about schemas */
    struct prb_arena texts; /* of the tables */
    struct united **tables;
    size_t table_count, table_cap;
    char note[200];
    /* of the running statement */
    struct prb_ask ask;
    struct prb_answers answers; /* by rank */
};

/* ---- which tables there are ---- */

static int by_rank(const void *a, const void *b)
{
    const struct prb_answer *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool ask_schema(struct rows_source *source, const char *args, struct prb_answers *answers,
                       struct prb_error *err)
{
    if (!source->asker.ask(source->asker.context, "schema", args, answers, err))
        return false;
    if (answers->count)
        qsort(answers->items, answers->count, sizeof *answers->items, by_rank);
    return true;
}

static bool hash_of(const json_t *answer, char out[17])
{
    const char *hash = json_string_value(json_object_get(answer, "hash"));
    snprintf(out, 17, "%s", hash ? hash : "");
    return strlen(out) == 16;
}

static bool is_known(const struct rows_source *source, const char *hash)
{
    for (size_t i = 0; i < source->schema_count; i++)
        if (strcmp(source->schemas[i].hash, hash) == 0)
            return true;
    return false;
}

/* *changed_out: the ranks, or what they have, are others than before. */
static bool take_hashes(struct rows_source *source, const struct prb_answers *answers,
                        bool *changed_out)
{
    *changed_out = answers->count != source->member_count;
    for (size_t i = 0; i < answers->count; i++) {
        struct member one = {.rank = answers->items[i].rank};
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

static bool lacks_schema(const struct rows_source *source)
{
    for (size_t i = 0; i < source->member_count; i++)
        if (source->members[i].hash[0] != '-' && !is_known(source, source->members[i].hash))
            return true;
    return false;
}

static bool take_schemas(struct rows_source *source, const struct prb_answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        struct schema one;
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
static bool look(struct rows_source *source, bool *changed_out, struct prb_error *err)
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
    struct rows_source *source = (struct rows_source *)base;
    bool any = true;
    source->error = (struct prb_error){0};
    return !look(source, &any, &source->error) || any;
}

/* ---- one table of all ----  */

static bool is_name(const char *name)
{
    return name && *name && strlen(name) < NAME_MAX_ &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

static const char *keep(struct rows_source *source, const json_t *object, const char *key)
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

static size_t count_columns(const struct united *united)
{
    size_t count = 0;
    while (united->columns && united->columns[count].name)
        count++;
    return count;
}

static bool insert(struct united *united, size_t at, const struct prb_column *column)
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
static bool add_column(struct rows_source *source, struct united *united, const json_t *json)
{
    struct prb_column column = {.type = type_of(json)};
    const char *name = json_string_value(json_object_get(json, "name"));
    int there = is_name(name) && united->columns ? prb_table_column(&united->table, name) : -1;
    column.hidden = json_is_true(json_object_get(json, "hidden"));
    if (!is_name(name) || count_columns(united) >= COLUMNS_MAX)
        return true;
    if (there >= 0) {
        struct prb_column *known = &united->columns[there];
        if (known->type != column.type)
            known->type = PRB_NULL_VALUE; /* ranks differ: no affinity */
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

static struct united *find(const struct rows_source *source, const char *schema, const char *name)
{
    for (size_t i = 0; i < source->table_count; i++)
        if (strcasecmp(source->tables[i]->table.schema, schema) == 0 &&
            strcasecmp(source->tables[i]->table.name, name) == 0)
            return source->tables[i];
    return NULL;
}

static bool fill(struct prb_rows *rows, struct prb_error *err);

static struct united *add_table(struct rows_source *source, const json_t *json)
{
    struct united *united = calloc(1, sizeof *united);
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
                                       .fill = fill};
    return united->table.schema && united->table.name && united->table.doc ? united : NULL;
}

/* Each schema is a database to SQLite, of which there may be few. */
static bool is_room(const struct rows_source *source, const char *schema)
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

static bool unite(struct rows_source *source, const json_t *json)
{
    const char *schema = json_string_value(json_object_get(json, "schema"));
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *columns = json_object_get(json, "columns");
    if (!is_name(schema) || !is_name(name) || strcasecmp(schema, "information_schema") == 0 ||
        strcasecmp(schema, "temp") == 0 || !is_room(source, schema) ||
        source->table_count >= TABLES_MAX || !json_array_size(columns)) {
        snprintf(source->note, sizeof source->note,
                 "a table of a rank is left out: its name, or how many there are");
        return true;
    }
    struct united *united = find(source, schema, name);
    if (!united && !(united = add_table(source, json)))
        return false;
    for (size_t i = 0; i < json_array_size(columns); i++)
        if (!add_column(source, united, json_array_get(columns, i)))
            return false;
    return true;
}

/* Behind the visible columns, or behind all. */
static bool add_added(struct united *united)
{
    for (int i = 0; i < ADDED; i++)
        united->added[i] = -1;
    for (int i = 0; i < ADDED; i++) {
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

static void forget_tables(struct rows_source *source)
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
static const struct schema *schema_of(const struct rows_source *source, size_t member)
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
    struct rows_source *source = (struct rows_source *)base;
    if (source->error.code) {
        if (err)
            *err = source->error;
        return false;
    }
    forget_tables(source);
    for (size_t i = 0; i < source->member_count; i++) {
        const struct schema *schema = schema_of(source, i);
        for (size_t k = 0; schema && k < json_array_size(schema->tables); k++)
            if (!unite(source, json_array_get(schema->tables, k)))
                return prb_nomem(err);
    }
    for (size_t i = 0; i < source->table_count; i++)
        if (!add_added(source->tables[i]))
            return prb_nomem(err);
    *out = (const struct prb_table *const *)source->tables;
    *count_out = source->table_count;
    return true;
}

static const char *note(struct prb_table_source *base)
{
    struct rows_source *source = (struct rows_source *)base;
    return source->note[0] ? source->note : NULL;
}

/* ---- fetching ---- */

static bool is_own(const struct prb_table *table, size_t column)
{
    const struct united *united = (const struct united *)table;
    for (int i = 0; i < ADDED; i++)
        if (united->added[i] == (int)column)
            return false;
    return true;
}

static struct prb_asked *find_asked(const struct prb_ask *ask, const struct prb_table *table,
                                    const struct prb_argument *arguments)
{
    for (size_t i = 0; i < ask->count; i++)
        if (ask->items[i].table == table && prb_arguments_equal(ask->items[i].arguments, arguments))
            return &ask->items[i];
    return NULL;
}

/* The columns that the statement uses, and that are the ranks'. */
static bool choose_columns(struct prb_asked *asked, uint64_t wanted)
{
    const struct prb_table *table = asked->table;
    size_t visible = prb_table_visible(table);
    asked->columns = calloc(visible + 1, sizeof *asked->columns);
    for (size_t i = 0; asked->columns && i < visible; i++)
        if (prb_column_in(wanted, i) && is_own(table, i))
            asked->columns[asked->column_count++] = (int)i;
    return asked->columns;
}

static struct prb_asked *add_asked(struct prb_ask *ask, const struct prb_db *db,
                                   const struct prb_term_set *set)
{
    struct prb_asked *items = reallocarray(ask->items, ask->count + 1, sizeof *items);
    if (!items)
        return NULL;
    ask->items = items;
    struct prb_asked *one = &items[ask->count++];
    *one = (struct prb_asked){
        .table = db->tables[set->table], .index = set->table, .sets_borrow = true, .limit = -1};
    for (size_t i = 0; i < PRB_ARGUMENTS_MAX; i++) {
        if (!set->arguments[i].given)
            continue;
        if (!prb_value_copy(&set->arguments[i].value, &one->arguments[i].value))
            return NULL;
        one->arguments[i].given = true;
    }
    one->sets = calloc(db->view.pushed.count, sizeof *one->sets);
    return one->sets && choose_columns(one, db->view.wanted[set->table]) ? one : NULL;
}

/* The first rows suffice where that is the only way in which the table is read. */
static void take_limit(struct prb_asked *asked, const struct prb_term_set *set)
{
    if (asked->set_count > 1 || set->limit < 0) {
        asked->limit = -1;
        return;
    }
    asked->limit = set->limit;
    asked->order_count = set->order_count;
    for (size_t i = 0; i < set->order_count; i++) {
        asked->order[i].column = (int)set->order[i].column;
        asked->order[i].descending = set->order[i].descending;
    }
}

static bool add_set(struct rows_source *source, struct prb_db *db, const struct prb_term_set *set,
                    struct prb_error *err)
{
    const struct prb_table *table = db->tables[set->table];
    if (table->fill != fill || set->unknown)
        return true;
    struct prb_asked *asked = find_asked(&source->ask, table, set->arguments);
    if (!asked && !(asked = add_asked(&source->ask, db, set)))
        return prb_nomem(err);
    asked->sets[asked->set_count++] = *set; /* borrowed */
    take_limit(asked, set);
    return true;
}

/* The table of which the most came, and of how many ranks. */
static bool over(const struct rows_source *source, const struct prb_answers *answers,
                 struct prb_error *err)
{
    size_t most = 0;
    PRB_AUTO(prb_buf) struct prb_buf names = {0};
    for (size_t i = 0; i < source->ask.count && i < 4; i++)
        prb_buf_addf(&names, "%s%s.%s", i ? ", " : "", source->ask.items[i].table->schema,
                     source->ask.items[i].table->name);
    for (size_t i = 0; i < answers->count; i++)
        most += answers->items[i].len;
    prb_fail(err, PRB_TIMEOUT, "%.120s of %zu ranks: %.120s (%zu ranks' and %zu MiB had come)",
             prb_buf_ok(&names) ? names.data : "", source->member_count, answers->over.text,
             answers->count, most >> 20);
    return prb_error_remedy(err, "restrict it by WHERE, by @JOB:RANKS, or raise "
                                 "PROBING_CLUSTER_MAX_ROWS or PROBING_CLUSTER_MAX_BYTES");
}

static void forget(void *context)
{
    struct rows_source *source = context;
    prb_ask_deinit(&source->ask);
    prb_answers_deinit(&source->answers);
}

static bool ask_rows(struct rows_source *source, const struct prb_db *db, struct prb_error *err)
{
    PRB_AUTO(json_t) json_t *json = prb_ask_json(&source->ask, &db->settings, is_own);
    PRB_AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    struct prb_answers *answers = &source->answers;
    answers->rows_max = source->asker.rows_max ? source->asker.rows_max : ROWS_MAX;
    answers->bytes_max = source->asker.bytes_max ? source->asker.bytes_max : BYTES_MAX;
    if (!text)
        return prb_nomem(err);
    bool good = source->asker.ask(source->asker.context, "rows", text, answers, err);
    if (answers->over.code)
        return over(source, answers, err);
    if (good && answers->count)
        qsort(answers->items, answers->count, sizeof *answers->items, by_rank);
    return good;
}

/* What ranks say of their rows. */
static bool take_notes(struct rows_source *source, struct prb_db *db, struct prb_error *err)
{
    size_t more = 0;
    for (size_t i = 0; i < source->answers.count; i++) {
        const struct prb_answer *answer = &source->answers.items[i];
        struct prb_packed part;
        if (!prb_packed_open(answer->data, answer->len, &part, err))
            return prb_error_prefix(err, "rank %d", answer->rank);
        if (part.table_count != source->ask.count)
            return prb_fail(err, PRB_CORRUPT, "rank %d: it sent other tables than were asked for",
                            answer->rank);
        if (part.note_len && !more++)
            snprintf(db->warning, sizeof db->warning, "rank %d: %.*s", answer->rank,
                     (int)(part.note_len < 280 ? part.note_len : 280), part.note);
    }
    if (more > 1) {
        size_t used = strlen(db->warning);
        snprintf(db->warning + used, sizeof db->warning - used, " (and %zu other ranks)", more - 1);
    }
    return true;
}

static bool fetch(struct prb_table_source *base, struct prb_db *db, struct prb_error *err)
{
    struct rows_source *source = (struct rows_source *)base;
    const struct prb_pushed *pushed = &db->view.pushed;
    forget(source);
    db->view.shared = source; /* until the statement ends */
    db->view.shared_free = forget;
    source->ask.needs = db->view.needs;
    source->ask.grouped = pushed->grouped;
    for (size_t i = 0; i < pushed->count; i++)
        if (!add_set(source, db, &pushed->sets[i], err))
            return false;
    return source->ask.count == 0 || (ask_rows(source, db, err) && take_notes(source, db, err));
}

/* ---- rows ---- */

static void set_cell(struct prb_rows *rows, size_t first, int column, struct prb_cell cell)
{
    int slot = column >= 0 ? rows->slots[column] : -1;
    if (slot < 0 || rows->failed)
        return;
    for (size_t i = first; i < rows->count; i++)
        rows->cells[i * rows->stored + (size_t)slot] = cell;
}

static void set_added(struct prb_rows *rows, size_t first, const struct prb_answer *answer)
{
    const struct united *united = (const struct united *)rows->table;
    struct prb_cell rank = {.type = PRB_INTEGER, .integer = answer->rank};
    struct prb_cell host = prb_rows_keep(rows, answer->host, strlen(answer->host), false);
    set_cell(rows, first, united->added[RANK], rank);
    set_cell(rows, first, united->added[HIDDEN_RANK], rank);
    set_cell(rows, first, united->added[HOST], host);
    set_cell(rows, first, united->added[HIDDEN_HOST], host);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct rows_source *source = prb_rows_db(rows)->view.shared;
    const struct prb_asked *asked =
        source ? find_asked(&source->ask, rows->table, rows->arguments) : NULL;
    if (!asked)
        return prb_fail(err, PRB_INTERNAL, "%s.%s was not asked for", rows->table->schema,
                        rows->table->name);
    size_t which = (size_t)(asked - source->ask.items);
    for (size_t i = 0; i < source->answers.count; i++) {
        const struct prb_answer *answer = &source->answers.items[i];
        struct prb_packed part;
        size_t first;
        if (!prb_packed_open(answer->data, answer->len, &part, err) ||
            !prb_packed_rows(&part.tables[which], asked->columns, asked->column_count, rows, &first,
                             err))
            return prb_error_prefix(err, "rank %d", answer->rank);
        set_added(rows, first, answer);
    }
    return true;
}

/* ---- what was fetched ---- */

static void add_value(struct prb_buf *out, const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        prb_buf_addf(out, " %lld", (long long)value->integer);
    else if (value->type == PRB_REAL)
        prb_buf_addf(out, " %.17g", value->real);
    else
        prb_buf_addf(out, " '%.80s'", value->text);
}

static void add_filter(struct prb_buf *out, const struct prb_asked *asked)
{
    for (size_t i = 0; i < asked->set_count; i++)
        if (asked->sets[i].count == 0)
            return; /* all rows */
    for (size_t i = 0; i < asked->set_count; i++) {
        const struct prb_term_set *set = &asked->sets[i];
        prb_buf_adds(out, i ? " OR " : "");
        for (size_t k = 0; k < set->count; k++) {
            const struct prb_term *term = &set->terms[k];
            prb_buf_addf(out, "%s%s %s", k ? " AND " : "", asked->table->columns[term->column].name,
                         prb_term_names[term->op]);
            if (term->op != PRB_TERM_IS_NULL)
                add_value(out, &term->value);
        }
    }
}

static void add_limit(struct prb_buf *out, const struct prb_asked *asked)
{
    if (asked->limit < 0)
        return;
    for (size_t i = 0; i < asked->order_count; i++)
        prb_buf_addf(out, "%s%s%s",
                     i          ? ", "
                     : out->len ? " ORDER BY "
                                : "ORDER BY ",
                     asked->table->columns[asked->order[i].column].name,
                     asked->order[i].descending ? " DESC" : "");
    prb_buf_addf(out, "%sLIMIT %lld", out->len ? " " : "", (long long)asked->limit);
}

static void add_columns(struct prb_buf *out, const struct prb_asked *asked)
{
    for (size_t i = 0; i < asked->column_count; i++)
        prb_buf_addf(out, "%s%s", i ? ", " : "", asked->table->columns[asked->columns[i]].name);
}

/* Of one host: its ranks follow one another only in their numbers. */
struct of_host {
    const char *host;
    size_t ranks, sent, bytes;
    uint64_t rows;
};

static bool sum_host(const struct rows_source *source, size_t which, struct of_host *out,
                     struct prb_error *err)
{
    for (size_t i = 0; i < source->answers.count; i++) {
        const struct prb_answer *answer = &source->answers.items[i];
        struct prb_packed part;
        if (strcmp(answer->host, out->host) != 0)
            continue;
        if (!prb_packed_open(answer->data, answer->len, &part, err))
            return false;
        out->ranks += !part.tables[which].missing;
        out->sent += part.tables[which].rows;
        out->rows += prb_packed_count(&part.tables[which]);
        out->bytes += part.tables[which].len;
    }
    return true;
}

static struct prb_value text_value(const char *text)
{
    return (struct prb_value){
        .type = PRB_TEXT, .text = text ? text : "", .length = text ? strlen(text) : 0};
}

static struct prb_value integer_value(uint64_t value)
{
    return (struct prb_value){.type = PRB_INTEGER, .integer = (int64_t)value, .text = ""};
}

static const char *const plan_names[] = {"table", "columns", "filter", "host",
                                         "ranks", "rows",    "sent",   "bytes"};
#define PLAN_COLUMNS (sizeof plan_names / sizeof *plan_names)

struct planning {
    prb_row_fn *each;
    void *context;
};

static bool plan_table(const struct rows_source *source, size_t which,
                       const struct planning *planning, struct prb_error *err)
{
    const struct prb_asked *asked = &source->ask.items[which];
    PRB_AUTO(prb_buf) struct prb_buf columns = {0}, filter = {0};
    char name[2 * NAME_MAX_ + 2];
    add_columns(&columns, asked);
    add_filter(&filter, asked);
    add_limit(&filter, asked);
    snprintf(name, sizeof name, "%s.%s", asked->table->schema, asked->table->name);
    for (size_t i = 0; i < source->answers.count; i++) {
        struct of_host sum = {.host = source->answers.items[i].host};
        size_t before = 0;
        while (before < i && strcmp(source->answers.items[before].host, sum.host) != 0)
            before++;
        if (before < i)
            continue;
        if (!sum_host(source, which, &sum, err))
            return false;
        const struct prb_value row[PLAN_COLUMNS] = {
            text_value(name),        text_value(columns.data), text_value(filter.data),
            text_value(sum.host),    integer_value(sum.ranks), integer_value(sum.rows),
            integer_value(sum.sent), integer_value(sum.bytes)};
        if (planning->each && !planning->each(planning->context, PLAN_COLUMNS, plan_names, row))
            return true;
    }
    return true;
}

static bool plan(struct prb_table_source *base, struct prb_db *db, prb_row_fn *each, void *context,
                 struct prb_error *err)
{
    const struct rows_source *source = (const struct rows_source *)base;
    const struct planning planning = {each, context};
    (void)db;
    if (each && !each(context, PLAN_COLUMNS, plan_names, NULL))
        return true;
    for (size_t i = 0; i < source->ask.count; i++)
        if (!plan_table(source, i, &planning, err))
            return false;
    return true;
}

/* ---- making ---- */

static void free_source(struct prb_table_source *base)
{
    struct rows_source *source = (struct rows_source *)base;
    forget(source);
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
    struct rows_source *source = calloc(1, sizeof *source);
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
                                               .fetch = fetch,
                                               .plan = plan};
    return &source->source;
}
