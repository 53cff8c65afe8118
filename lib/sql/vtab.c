/*
 * The one sqlite3_module of all tables (https://sqlite.org/vtab.html).  The plan pushes down `=` on
 * arguments, and bounds on times to tables that can leave out the rest; while planning, it notes
 * what the statement uses of each table, and of tables whose rows are fetched what it asks of them
 * (pushed.h); a cursor walks rows that the view made once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sql/db.h"
#include "sql/dialect.h"

struct table_of_sqlite {
    sqlite3_vtab base; /* first */
    struct prb_db *db;
    size_t index; /* in db->tables */
};

/* What a statement says of a time's column, for the cursor to check (take_times). */
#define TIMES_MAX 2
struct bound {
    char said; /* as in idxStr */
    double time;
    struct prb_value number; /* the same, exact */
};
struct bounds {
    size_t slot, count; /* of the column's cell in a row; count 0: nothing is said */
    struct bound items[TIMES_MAX];
    bool is_range; /* from least to most, as doubles: what most statements say */
    double least, most;
};

struct cursor {
    sqlite3_vtab_cursor base; /* first */
    struct prb_rows *rows;
    struct prb_row_range range;
    uint32_t repeat; /* of a row that stands for several */
    struct bounds bounds;
};

static const struct prb_table *table_of(const struct table_of_sqlite *vtab)
{
    return vtab->db->tables[vtab->index];
}

/* ---- declaration ---- */

static int declare(sqlite3 *sqlite, const struct prb_table *table)
{
    PRB_AUTO(prb_buf) struct prb_buf sql = {0};
    prb_buf_adds(&sql, "CREATE TABLE x(");
    for (const struct prb_column *column = table->columns; column->name; column++)
        prb_buf_addf(&sql, "%s\"%s\" %s%s", column == table->columns ? "" : ",", column->name,
                     column->type == PRB_NULL_VALUE ? "" : prb_type_name(column->type),
                     column->hidden ? " HIDDEN" : "");
    prb_buf_addc(&sql, ')');
    return prb_buf_ok(&sql) ? sqlite3_declare_vtab(sqlite, sql.data) : SQLITE_NOMEM;
}

/* CREATE VIRTUAL TABLE schema.name USING prb: argv[1] is the schema, argv[2] the name. */
static int vtab_connect(sqlite3 *sqlite, void *context, int argc, const char *const *argv,
                        sqlite3_vtab **out, char **message_out)
{
    (void)message_out;
    struct prb_db *db = context;
    int index = argc >= 3 ? prb_db_find_table(db, argv[1], argv[2]) : -1;
    if (index < 0)
        return SQLITE_ERROR;
    int rc = declare(sqlite, db->tables[index]);
    if (rc != SQLITE_OK)
        return rc;
    struct table_of_sqlite *vtab = sqlite3_malloc(sizeof *vtab);
    if (!vtab)
        return SQLITE_NOMEM;
    *vtab = (struct table_of_sqlite){.db = db, .index = (size_t)index};
    *out = &vtab->base;
    return SQLITE_OK;
}

/* Different from xConnect, so that the module itself is not a table. */
static int vtab_create(sqlite3 *sqlite, void *context, int argc, const char *const *argv,
                       sqlite3_vtab **out, char **message_out)
{
    return vtab_connect(sqlite, context, argc, argv, out, message_out);
}

static int vtab_disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

/* ---- planning ---- */

/* Whether a term is column = the text that asks for nothing more. */
static bool is_unless(sqlite3_index_info *info, int term, const char *unless)
{
    if (!unless || info->aConstraint[term].op != SQLITE_INDEX_CONSTRAINT_EQ)
        return false;
    sqlite3_value *value = prb_sqlite_rhs_value(info, term);
    const char *text = value ? (const char *)sqlite3_value_text(value) : NULL;
    return text && strcmp(text, unless) == 0;
}

/* LIMIT and OFFSET are of the table, and their column says nothing. */
static bool is_of_column(unsigned char op)
{
    return op != SQLITE_INDEX_CONSTRAINT_LIMIT && op != SQLITE_INDEX_CONSTRAINT_OFFSET;
}

static void note_needs(struct table_of_sqlite *vtab, sqlite3_index_info *info)
{
    const struct prb_table *table = table_of(vtab);
    struct prb_statement_view *view = &vtab->db->view;
    view->needs |= table->needs;
    for (size_t i = 0; table->columns[i].name; i++)
        if (prb_column_in(info->colUsed, i))
            view->needs |= table->columns[i].needs;
    for (int term = 0; term < info->nConstraint; term++) {
        int column = info->aConstraint[term].iColumn;
        if (column >= 0 && is_of_column(info->aConstraint[term].op) &&
            table->columns[column].asks && !is_unless(info, term, table->columns[column].unless))
            view->needs |= table->columns[column].asks;
    }
    if (view->wanted)
        view->wanted[vtab->index] |= info->colUsed;
}

static int refuse_term(struct table_of_sqlite *vtab, const struct prb_column *column)
{
    vtab->base.zErrMsg = sqlite3_mprintf("%s is an argument: only %s = value can be asked",
                                         column->name, column->name);
    return SQLITE_ERROR;
}

static bool is_equal_term(unsigned char op)
{
    return op == SQLITE_INDEX_CONSTRAINT_EQ || op == SQLITE_INDEX_CONSTRAINT_IS;
}

/* Terms on arguments; usable[i]: 1 + the term that gives argument i.  asked: a bit for each. */
static bool take_arguments(struct table_of_sqlite *vtab, sqlite3_index_info *info,
                           int usable[PRB_ARGUMENTS_MAX], int *asked)
{
    const struct prb_table *table = table_of(vtab);
    int first = (int)prb_table_visible(table), count = (int)prb_table_arguments(table);
    for (int term = 0; term < info->nConstraint; term++) {
        int argument = info->aConstraint[term].iColumn - first;
        if (argument < 0 || argument >= count || !is_of_column(info->aConstraint[term].op))
            continue;
        if (!is_equal_term(info->aConstraint[term].op)) {
            refuse_term(vtab, &table->columns[first + argument]);
            return false;
        }
        *asked |= 1 << argument;
        if (info->aConstraint[term].usable)
            usable[argument] = term + 1;
    }
    return true;
}

/*
 * idxNum: a bit for each argument, then for each column to look up by six bits: 1 + its index.  The
 * values come in this order.
 */
#define LOOKUP_BITS 6

static int take_lookups(struct table_of_sqlite *vtab, sqlite3_index_info *info, int *count)
{
    const struct prb_table *table = table_of(vtab);
    int plan = 0, lookups = 0, visible = (int)prb_table_visible(table);
    for (int term = 0; term < info->nConstraint && lookups < PRB_LOOKUPS_MAX; term++) {
        int column = info->aConstraint[term].iColumn;
        if (column < 0 || column >= visible || column + 1 >= 1 << LOOKUP_BITS ||
            table->columns[column].type != PRB_INTEGER ||
            info->aConstraint[term].op != SQLITE_INDEX_CONSTRAINT_EQ ||
            !info->aConstraint[term].usable ||
            prb_pushed_is_list(&vtab->db->view.pushed, table, info, term))
            continue;
        info->aConstraintUsage[term].argvIndex = ++*count;
        plan |= (column + 1) << (PRB_ARGUMENTS_MAX + LOOKUP_BITS * lookups++);
    }
    return plan;
}

/*
 * idxStr: the time's column by its index, ':', and what is said of it, "g" and "l" for at least and
 * at most, "G" and "L" for above and below, in the order of the values, which are the last ones.
 * The cursor gives only rows that hold it: that SQLite asks each row for its time and compares it
 * would take twice as long.  Of a table that is fetched: the number of its terms in the view's list.
 */
static bool is_time(const struct prb_column *column)
{
    return column->type == PRB_REAL && !column->hidden &&
           (strcmp(column->name, "timestamp") == 0 || strcmp(column->name, "time") == 0 ||
            strcmp(column->name, "ts") == 0);
}

static char bound_of(unsigned char op)
{
    return op == SQLITE_INDEX_CONSTRAINT_GE   ? 'g'
           : op == SQLITE_INDEX_CONSTRAINT_GT ? 'G'
           : op == SQLITE_INDEX_CONSTRAINT_LE ? 'l'
           : op == SQLITE_INDEX_CONSTRAINT_LT ? 'L'
                                              : '\0';
}
static bool is_least(char said) { return said == 'g' || said == 'G'; }

static int take_terms(struct table_of_sqlite *vtab, sqlite3_index_info *info,
                      const int usable[PRB_ARGUMENTS_MAX], int count)
{
    size_t number;
    int rc = prb_pushed_add(&vtab->db->view.pushed, table_of(vtab), vtab->index, info, usable,
                            &count, &number);
    if (rc == SQLITE_OK && !(info->idxStr = sqlite3_mprintf("%lld", (long long)number)))
        rc = SQLITE_NOMEM;
    info->needToFreeIdxStr = rc == SQLITE_OK;
    return rc;
}

static int take_times(const struct prb_table *table, sqlite3_index_info *info, int count)
{
    char said[TIMES_MAX + 1] = "";
    int column = -1;
    size_t terms = 0;
    for (int term = 0; table->timed && term < info->nConstraint && terms < TIMES_MAX; term++) {
        int at = info->aConstraint[term].iColumn;
        char bound = bound_of(info->aConstraint[term].op);
        if (at < 0 || !bound || !info->aConstraint[term].usable || (column >= 0 && at != column) ||
            !is_time(&table->columns[at]))
            continue;
        column = at;
        said[terms++] = bound;
        info->aConstraintUsage[term].argvIndex = ++count;
        info->aConstraintUsage[term].omit = 1;
    }
    if (terms && !(info->idxStr = sqlite3_mprintf("%d:%s", column, said)))
        return SQLITE_NOMEM;
    info->needToFreeIdxStr = terms > 0;
    return SQLITE_OK;
}

static int vtab_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    struct table_of_sqlite *vtab = (struct table_of_sqlite *)base;
    int asked = 0, count = 0, usable[PRB_ARGUMENTS_MAX] = {0};
    note_needs(vtab, info);
    if (!take_arguments(vtab, info, usable, &asked))
        return SQLITE_ERROR;
    for (int argument = 0; argument < PRB_ARGUMENTS_MAX; argument++) {
        if (!(asked >> argument & 1))
            continue;
        if (!usable[argument])
            return SQLITE_CONSTRAINT; /* its value comes from a table that must be before this one
                                       */
        info->aConstraintUsage[usable[argument] - 1].argvIndex = ++count;
        info->aConstraintUsage[usable[argument] - 1].omit = 1;
    }
    int lookups = take_lookups(vtab, info, &count);
    info->idxNum = asked | lookups;
    info->estimatedRows = lookups ? 20 : 1000;
    info->estimatedCost = lookups ? 20 : 1000;
    if (table_of(vtab)->fetched)
        return take_terms(vtab, info, usable, count);
    /* Rows that each side of an OR looks up are told apart by their rowids: of one row set. */
    if (lookups && vtab->db->view.pushed.alternatives)
        return SQLITE_OK;
    return take_times(table_of(vtab), info, count);
}

/* ---- reading ---- */

static int cursor_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
    (void)vtab;
    struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){0};
    *out = &cursor->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static struct prb_value value_from(sqlite3_value *value)
{
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        return (struct prb_value){.type = PRB_INTEGER, .integer = sqlite3_value_int64(value)};
    case SQLITE_FLOAT:
        return (struct prb_value){.type = PRB_REAL, .real = sqlite3_value_double(value)};
    case SQLITE_TEXT:
        return (struct prb_value){.type = PRB_TEXT,
                                  .text = (const char *)sqlite3_value_text(value),
                                  .length = (size_t)sqlite3_value_bytes(value)};
    case SQLITE_BLOB:
        return (struct prb_value){.type = PRB_BLOB,
                                  .text = sqlite3_value_blob(value),
                                  .length = (size_t)sqlite3_value_bytes(value)};
    default:
        return (struct prb_value){.type = PRB_NULL_VALUE};
    }
}

/* The rows that the looked-up columns give; all rows where the values are not integers. */
static struct prb_row_range find(struct prb_rows *rows, int plan, sqlite3_value **values)
{
    struct prb_row_range range = {NULL, 0, rows->count};
    size_t columns[PRB_LOOKUPS_MAX], count = 0;
    int64_t numbers[PRB_LOOKUPS_MAX];
    for (int rest = plan >> PRB_ARGUMENTS_MAX; rest; rest >>= LOOKUP_BITS, values++) {
        if (sqlite3_value_type(*values) != SQLITE_INTEGER)
            continue;
        columns[count] = (size_t)(rest & ((1 << LOOKUP_BITS) - 1)) - 1;
        numbers[count++] = sqlite3_value_int64(*values);
    }
    if (count && !prb_rows_find(rows, columns, numbers, count, &range) && count > 1)
        prb_rows_find(rows, columns, numbers, 1, &range);
    return range;
}

/*
 * A value as SQLite compares it with a number: NULL fits none, and what is no number is above all
 * of them.
 */
static struct bound bound_from(char said, sqlite3_value *value)
{
    struct bound bound = {said, 0, {.type = PRB_REAL}};
    switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
        bound.number = value_from(value);
        bound.time = sqlite3_value_double(value);
        break;
    case SQLITE_NULL:
        bound.number.real = bound.time = is_least(said) ? INFINITY : -INFINITY;
        bound.said = is_least(said) ? 'G' : 'L';
        break;
    default:
        bound.number.real = bound.time = INFINITY;
        bound.said = is_least(said) ? 'G' : 'l';
    }
    return bound;
}

/* plan: idxStr; values: behind those of arguments and lookups. */
static struct prb_times times_of(const struct prb_table *table, const char *plan,
                                 sqlite3_value **values, struct bounds *bounds_out)
{
    struct prb_times times = {NULL, -INFINITY, INFINITY};
    const char *said = plan ? strchr(plan, ':') : NULL;
    bounds_out->count = 0;
    if (!said)
        return times;
    times.column = table->columns[atoi(plan)].name;
    bounds_out->is_range = true;
    for (said++; *said && bounds_out->count < TIMES_MAX; said++, values++) {
        struct bound bound = bound_from(*said, *values);
        bounds_out->items[bounds_out->count++] = bound;
        bounds_out->is_range = bounds_out->is_range && bound.number.type == PRB_REAL &&
                               (bound.said == 'g' || bound.said == 'l');
        if (is_least(bound.said) && bound.time > times.least)
            times.least = bound.time;
        if (!is_least(bound.said) && bound.time < times.most)
            times.most = bound.time;
    }
    bounds_out->least = times.least;
    bounds_out->most = times.most;
    return times;
}

static bool holds(const struct bound *bound, const struct prb_cell *cell)
{
    struct prb_value value = {.type = cell->type};
    int order;
    if (cell->type == PRB_REAL && bound->number.type == PRB_REAL) /* with NaN none holds */
        return bound->said == 'g'   ? cell->real >= bound->time
               : bound->said == 'G' ? cell->real > bound->time
               : bound->said == 'l' ? cell->real <= bound->time
                                    : cell->real < bound->time;
    if (cell->type == PRB_TEXT || cell->type == PRB_BLOB)
        return is_least(bound->said);
    if (cell->type == PRB_NULL_VALUE || (cell->type == PRB_REAL && isnan(cell->real)))
        return false;
    if (cell->type == PRB_REAL)
        value.real = cell->real;
    else
        value.integer = cell->integer;
    order = prb_numbers_compare(&value, &bound->number);
    return is_least(bound->said) ? order > 0 || (order == 0 && bound->said == 'g')
                                 : order < 0 || (order == 0 && bound->said == 'l');
}

static int looked_up(int plan)
{
    int count = 0;
    for (int columns = plan >> PRB_ARGUMENTS_MAX; columns; columns >>= LOOKUP_BITS)
        count++;
    return count;
}

/* A plan that was made anew may ask for rows that were not fetched. */
static bool was_fetched(const struct table_of_sqlite *vtab, const char *plan, struct prb_error *err)
{
    const struct prb_pushed *pushed = &vtab->db->view.pushed;
    size_t number = plan ? (size_t)strtoul(plan, NULL, 10) : SIZE_MAX;
    const struct prb_table *table = table_of(vtab);
    if (number >= pushed->fetched || pushed->sets[number].table != vtab->index)
        return prb_fail(err, PRB_INTERNAL, "%s.%s: the plan of the statement changed meanwhile",
                        table->schema, table->name);
    if (!pushed->sets[number].unknown)
        return true;
    if (!prb_sqlite_tells_constants())
        return prb_fail(err, PRB_UNSUPPORTED,
                        "%s.%s with an argument, of several ranks, needs SQLite 3.38",
                        table->schema, table->name);
    prb_fail(err, PRB_UNSUPPORTED,
             "%s.%s takes its argument from another table's rows, which are not known before "
             "the ranks are asked",
             table->schema, table->name);
    return prb_error_remedy(err, "give a constant: %s.%s(1)", table->schema, table->name);
}

static size_t row_of(const struct cursor *cursor)
{
    const struct prb_row_range *range = &cursor->range;
    return range->order ? range->order[range->next] : range->next;
}

/* To the next row that holds what is said of its time. */
static void pass_over(struct cursor *cursor)
{
    const struct prb_rows *rows = cursor->rows;
    const struct bounds *bounds = &cursor->bounds;
    for (; bounds->count && cursor->range.next < cursor->range.end; cursor->range.next++) {
        const struct prb_cell *cell = &rows->cells[row_of(cursor) * rows->stored + bounds->slot];
        if (bounds->is_range && cell->type == PRB_REAL) {
            if (cell->real >= bounds->least && cell->real <= bounds->most)
                return;
        } else if (holds(&bounds->items[0], cell) &&
                   (bounds->count < TIMES_MAX || holds(&bounds->items[1], cell))) {
            return;
        }
    }
}

static int cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *plan_text, int argc,
                         sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    struct table_of_sqlite *vtab = (struct table_of_sqlite *)base->pVtab;
    struct prb_statement_view *view = &vtab->db->view;
    struct prb_argument arguments[PRB_ARGUMENTS_MAX] = {0};
    int next = 0;
    if (table_of(vtab)->fetched && !was_fetched(vtab, plan_text, &view->error)) {
        view->failed = true;
        return SQLITE_ERROR;
    }
    for (int i = 0; i < PRB_ARGUMENTS_MAX && next < argc; i++)
        if (plan >> i & 1)
            arguments[i] = (struct prb_argument){true, value_from(argv[next++])};
    const struct prb_times times =
        times_of(table_of(vtab), plan_text, argv + next + looked_up(plan), &cursor->bounds);
    cursor->rows = prb_db_rows(vtab->db, vtab->index, arguments, &times, &view->error);
    view->failed = view->failed || !cursor->rows;
    if (!cursor->rows)
        return SQLITE_ERROR;
    cursor->range = find(cursor->rows, plan, argv + next);
    cursor->repeat = 0;
    if (cursor->bounds.count) {
        int slot = cursor->rows->slots[atoi(plan_text)];
        cursor->bounds.slot = (size_t)slot;
        if (slot < 0) /* SQLite asks for each column of a term */
            cursor->range.end = cursor->range.next;
    }
    pass_over(cursor);
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    const struct cursor *cursor = (const struct cursor *)base;
    return cursor->range.next >= cursor->range.end;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    const uint32_t *repeats = cursor->rows->repeats;
    if (repeats && ++cursor->repeat < repeats[row_of(cursor)])
        return SQLITE_OK;
    cursor->repeat = 0;
    cursor->range.next++;
    pass_over(cursor);
    return SQLITE_OK;
}

static void give(sqlite3_context *context, const struct prb_value *value)
{
    switch (value->type) {
    case PRB_INTEGER:
        sqlite3_result_int64(context, value->integer);
        break;
    case PRB_REAL:
        sqlite3_result_double(context, value->real);
        break;
    case PRB_TEXT: /* lives as long as the statement's view */
        sqlite3_result_text64(context, value->text, value->length, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case PRB_BLOB:
        sqlite3_result_blob64(context, value->text, value->length, SQLITE_STATIC);
        break;
    default:
        sqlite3_result_null(context);
    }
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct cursor *cursor = (const struct cursor *)base;
    const struct prb_rows *rows = cursor->rows;
    size_t argument = (size_t)column - rows->visible;
    if ((size_t)column < rows->visible || argument >= rows->argument_count) {
        struct prb_value value = prb_rows_value(rows, row_of(cursor), (size_t)column);
        give(context, &value);
    } else if (rows->arguments[argument].given) {
        give(context, &rows->arguments[argument].value);
    }
    return SQLITE_OK;
}

/* SQLite tells rows apart by these where a term has an OR. */
static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    const struct cursor *cursor = (const struct cursor *)base;
    uint64_t row = cursor->repeat * (uint64_t)cursor->rows->count + row_of(cursor);
    *out = (sqlite3_int64)((uint64_t)cursor->rows->number << PRB_ROW_BITS | row);
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .iVersion = 1,
    .xCreate = vtab_create,
    .xConnect = vtab_connect,
    .xBestIndex = vtab_best_index,
    .xDisconnect = vtab_disconnect,
    .xDestroy = vtab_disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
};

/* ---- registration ---- */

static bool run(struct prb_db *db, const char *sql, struct prb_error *err)
{
    if (sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    return prb_fail(err, PRB_INTERNAL, "%s: %s", sql, sqlite3_errmsg(db->sqlite));
}

static bool attach(struct prb_db *db, const char *schema, struct prb_error *err)
{
    char sql[128];
    if (strcmp(schema, "main") == 0 || sqlite3_db_filename(db->sqlite, schema))
        return true;
    sqlite3_snprintf(sizeof sql, sql, "ATTACH ':memory:' AS \"%w\"", schema);
    return run(db, sql, err);
}

bool prb_vtab_register(struct prb_db *db, struct prb_error *err)
{
    if (sqlite3_create_module_v2(db->sqlite, "prb", &module, db, NULL) != SQLITE_OK)
        return prb_nomem(err);
    return prb_vtab_attach(db, 0, err);
}

bool prb_vtab_attach(struct prb_db *db, size_t first, struct prb_error *err)
{
    for (size_t i = first; i < db->table_count; i++)
        if (!attach(db, db->tables[i]->schema, err))
            return false;
    return true;
}

static bool is_declared(const struct prb_db *db, const struct prb_table *table)
{
    return sqlite3_table_column_metadata(db->sqlite, table->schema, table->name, NULL, NULL, NULL,
                                         NULL, NULL, NULL) == SQLITE_OK;
}

/* form has the schema and the name as %w. */
static bool run_for(struct prb_db *db, const struct prb_table *table, const char *form,
                    struct prb_error *err)
{
    char sql[256];
    sqlite3_snprintf(sizeof sql, sql, form, table->schema, table->name);
    return run(db, sql, err);
}

/* The tables of a name: those of all schemas, among which SQLite chooses. */
static bool declare_name(struct prb_db *db, const char *name, struct prb_error *err)
{
    for (size_t i = 0; i < db->table_count; i++)
        if (strcasecmp(db->tables[i]->name, name) == 0 && !is_declared(db, db->tables[i]) &&
            !run_for(db, db->tables[i], "CREATE VIRTUAL TABLE \"%w\".\"%w\" USING prb", err))
            return false;
    return true;
}

bool prb_vtab_declare(struct prb_db *db, const char *sql, size_t len, struct prb_error *err)
{
    char name[PRB_NAME_MAX];
    bool good = true;
    sqlite3_set_authorizer(db->sqlite, NULL, NULL); /* it allows nothing but reading */
    for (size_t offset = 0; good && offset < len;) {
        struct prb_token token = prb_token_at(sql, len, offset);
        offset = token.offset + token.len;
        if (token.kind != PRB_TOKEN_WORD && token.kind != PRB_TOKEN_QUOTED &&
            token.kind != PRB_TOKEN_STRING)
            continue;
        prb_token_unquote(sql, &token, name, sizeof name);
        good = declare_name(db, name, err);
    }
    prb_db_authorize(db);
    return good;
}

bool prb_vtab_drop(struct prb_db *db, size_t first, struct prb_error *err)
{
    for (size_t i = first; i < db->table_count; i++)
        if (is_declared(db, db->tables[i]) &&
            !run_for(db, db->tables[i], "DROP TABLE \"%w\".\"%w\"", err))
            return false;
    return true;
}
