/* Kept rows: cells in an array for each table, texts in an arena. */
#include "skill/kept.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"

struct kept_table {
    struct prb_table table; /* first: fill finds its rows by it */
    struct prb_column columns[PRB_KEPT_COLUMNS_MAX + 2];
    size_t column_count; /* with look */
    char *skill;         /* NULL: every skill's */
    struct prb_value *cells;
    size_t cell_count, cell_cap;
    struct prb_arena texts; /* and names */
    bool looks;
};

struct prb_kept {
    struct prb_table_source source; /* first */
    struct kept_table **tables;
    const struct prb_table **listed;
    size_t count, cap;
    const char *skill;
    struct kept_table *open; /* that a query fills */
    int look;
    bool changed;
};

static void table_free(struct kept_table *table)
{
    prb_arena_deinit(&table->texts);
    free(table->cells);
    free(table->skill);
    free(table);
}

static void kept_free(struct prb_table_source *source)
{
    struct prb_kept *kept = (struct prb_kept *)source;
    for (size_t i = 0; i < kept->count; i++)
        table_free(kept->tables[i]);
    free(kept->tables);
    free(kept->listed);
    free(kept);
}

static bool is_seen(const struct prb_kept *kept, const struct kept_table *table)
{
    return table->column_count &&
           (!table->skill || (kept->skill && strcmp(table->skill, kept->skill) == 0));
}

static bool has_changed(struct prb_table_source *source)
{
    return ((struct prb_kept *)source)->changed;
}

static bool list(struct prb_table_source *source, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err)
{
    struct prb_kept *kept = (struct prb_kept *)source;
    const struct prb_table **listed =
        reallocarray(kept->listed, kept->count + 1, sizeof *kept->listed);
    if (!listed)
        return prb_nomem(err);
    kept->listed = listed;
    *count_out = 0;
    for (size_t i = 0; i < kept->count; i++)
        if (is_seen(kept, kept->tables[i]))
            listed[(*count_out)++] = &kept->tables[i]->table;
    *out = listed;
    kept->changed = false;
    return true;
}

static void add_cell(struct prb_rows *rows, const struct prb_value *cell)
{
    switch (cell->type) {
    case PRB_INTEGER:
        prb_row_int(rows, cell->integer);
        break;
    case PRB_REAL:
        prb_row_real(rows, cell->real);
        break;
    case PRB_TEXT:
    case PRB_BLOB:
        prb_row_textn(rows, cell->text, cell->length);
        break;
    case PRB_NULL_VALUE:
        prb_row_null(rows);
        break;
    }
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    const struct kept_table *table = (const struct kept_table *)prb_rows_table(rows);
    for (size_t at = 0; at < table->cell_count; at += table->column_count) {
        prb_row_begin(rows);
        for (size_t i = 0; i < table->column_count; i++)
            add_cell(rows, &table->cells[at + i]);
    }
    return true;
}

static struct kept_table *add_table(struct prb_kept *kept, const char *skill, const char *name)
{
    struct kept_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->table = (struct prb_table){.schema = "kept",
                                      .doc = "rows that this skill kept",
                                      .columns = table->columns,
                                      .fill = fill};
    table->table.name = prb_arena_strdup(&table->texts, name);
    table->skill = skill ? strdup(skill) : NULL;
    if (!table->table.name || (skill && !table->skill) ||
        !PRB_GROW(kept->tables, kept->count, kept->cap)) {
        table_free(table);
        return NULL;
    }
    return kept->tables[kept->count++] = table;
}

struct prb_kept *prb_kept_new(struct prb_error *err)
{
    struct prb_kept *kept = calloc(1, sizeof *kept);
    if (!kept)
        return PRB_NULL(prb_nomem(err));
    kept->source =
        (struct prb_table_source){.changed = has_changed, .list = list, .free = kept_free};
    kept->changed = true;
    struct kept_table *since = add_table(kept, NULL, "since");
    if (!since) {
        kept_free(&kept->source);
        return PRB_NULL(prb_nomem(err));
    }
    since->columns[0] = (struct prb_column){"os_thread_id", PRB_INTEGER, "id", "of the thread"};
    since->columns[1] =
        (struct prb_column){"since", PRB_REAL, "s", "for how long it has not moved"};
    since->column_count = 2;
    return kept;
}

struct prb_table_source *prb_kept_source(struct prb_kept *kept) { return &kept->source; }

void prb_kept_choose(struct prb_kept *kept, const char *skill)
{
    kept->changed = kept->changed || !kept->skill || strcmp(kept->skill, skill) != 0;
    kept->skill = skill;
}

bool prb_kept_begin(struct prb_kept *kept, const char *name, int look, struct prb_error *err)
{
    kept->open = NULL;
    kept->look = look;
    for (size_t i = 0; i < kept->count; i++)
        if (kept->tables[i]->skill && strcmp(kept->tables[i]->skill, kept->skill) == 0 &&
            strcmp(kept->tables[i]->table.name, name) == 0)
            kept->open = kept->tables[i];
    if (!kept->open && !(kept->open = add_table(kept, kept->skill, name)))
        return prb_nomem(err);
    if (look <= 0)
        kept->open->cell_count = kept->open->column_count = 0;
    return true;
}

/* A name that SQL can quote, and that no column before has. */
static const char *column_name(struct kept_table *table, size_t at, const char *name)
{
    char *own = prb_arena_printf(&table->texts, "%.100s", *name ? name : "column");
    for (char *quote = own; quote && (quote = strchr(quote, '"'));)
        *quote = '\'';
    for (size_t i = 0; own && i < at; i++)
        if (strcasecmp(table->columns[i].name, own) == 0)
            return prb_arena_printf(&table->texts, "%s:%zu", own, at);
    return own;
}

/* No affinity until there is a value: what a column holds decides how it compares. */
static bool set_columns(struct prb_kept *kept, size_t columns, const char *const *names)
{
    struct kept_table *table = kept->open;
    size_t count = columns < PRB_KEPT_COLUMNS_MAX ? columns : PRB_KEPT_COLUMNS_MAX;
    if (table->column_count)
        return table->column_count == count + (kept->look >= 0);
    memset(table->columns, 0, sizeof table->columns);
    for (size_t i = 0; i < count; i++) {
        const char *name = column_name(table, i, names[i]);
        if (!name)
            return false;
        table->columns[i] = (struct prb_column){name, PRB_BLOB, "", "as the statement gave it"};
    }
    if (kept->look >= 0)
        table->columns[count++] = (struct prb_column){"look", PRB_INTEGER, "count", "from 0"};
    table->column_count = count;
    kept->changed = true;
    return true;
}

static bool keep_cell(struct kept_table *table, const struct prb_value *value)
{
    struct prb_value *cell = &table->cells[table->cell_count];
    *cell = value ? *value : (struct prb_value){.type = PRB_NULL_VALUE};
    if (cell->type == PRB_TEXT || cell->type == PRB_BLOB) {
        cell->length = value->length < PRB_KEPT_TEXT_MAX ? value->length : PRB_KEPT_TEXT_MAX;
        cell->text = prb_arena_strndup(&table->texts, value->text, cell->length);
        if (!cell->text)
            return false;
    }
    table->cell_count++;
    return true;
}

static bool room(struct kept_table *table)
{
    if (table->cell_count + table->column_count > PRB_KEPT_CELLS_MAX)
        return false;
    while (table->cell_cap < table->cell_count + table->column_count)
        if (!PRB_GROW(table->cells, table->cell_cap, table->cell_cap))
            return false;
    return true;
}

bool prb_kept_row(void *context, size_t columns, const char *const *names,
                  const struct prb_value *row)
{
    struct prb_kept *kept = context;
    struct kept_table *table = kept->open;
    if (!row)
        return set_columns(kept, columns, names);
    if (!room(table))
        return false;
    for (size_t i = 0; i + (kept->look >= 0) < table->column_count; i++)
        if (!keep_cell(table, &row[i]))
            return false;
    const struct prb_value look = {.type = PRB_INTEGER, .integer = kept->look};
    return kept->look < 0 || keep_cell(table, &look);
}

bool prb_kept_add_since(struct prb_kept *kept, int64_t os_thread_id, double since)
{
    struct kept_table *table = kept->tables[0];
    const struct prb_value cells[] = {{.type = PRB_INTEGER, .integer = os_thread_id},
                                      {.type = PRB_REAL, .real = since}};
    return room(table) && keep_cell(table, &cells[0]) && keep_cell(table, &cells[1]);
}
