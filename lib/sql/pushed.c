/* Terms of a statement that hold for every row it reads: see pushed.h. */
#include "sql/pushed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "sql/token.h"

#define SETS_MAX 1000  /* different ones of a statement; beyond: all rows */
#define TEXT_MAX_ 4096 /* bytes of a constant */

const char *const prb_term_names[PRB_TERM_OPS] = {"=", "<", "<=", ">", ">=", "IS", "IS NULL", "IN"};

void prb_term_set_deinit(struct prb_term_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free((char *)set->terms[i].value.text);
    free(set->terms);
    for (size_t i = 0; i < PRB_ARGUMENTS_MAX; i++)
        if (set->arguments[i].given)
            free((char *)set->arguments[i].value.text);
    *set = (struct prb_term_set){0};
}

void prb_pushed_deinit(struct prb_pushed *pushed)
{
    for (size_t i = 0; i < pushed->count; i++)
        prb_term_set_deinit(&pushed->sets[i]);
    free(pushed->sets);
    free(pushed->listed);
    *pushed = (struct prb_pushed){0};
}

/* ---- the first rows ---- */

/*
 * SQLite 3.40 offers LIMIT also for `WHERE a = b LIMIT 5`, with no term that shows a = b: so only
 * statements count that have nothing between the table's rows and the result's.
 */
static const char *const between[] = {"where",    "on",    "having", "using",    "natural",
                                      "join",     "group", "over",   "union",    "except",
                                      "distinct", "with",  "window", "intersect"};

static bool is_in(const char *sql, const struct prb_token *token, const char *const *words,
                  size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (prb_token_is(sql, token, words[i]))
            return true;
    return false;
}

/* ---- the lists of IN ---- */

#define DIGITS_MAX 18 /* of a number that fits */

struct reading {
    const char *sql;
    size_t len, offset;
    struct prb_token token;
};

static void read_next(struct reading *at)
{
    do {
        at->token = prb_token_at(at->sql, at->len, at->offset);
        at->offset = at->token.offset + at->token.len;
    } while (at->token.kind == PRB_TOKEN_SPACE);
}

static bool is_sign(const struct reading *at, char sign)
{
    return at->token.kind == PRB_TOKEN_OPERATOR && at->token.len == 1 &&
           at->sql[at->token.offset] == sign;
}

static bool read_number(struct reading *at, int64_t *out)
{
    bool minus = is_sign(at, '-');
    if (minus)
        read_next(at);
    if (at->token.kind != PRB_TOKEN_NUMBER || at->token.len > DIGITS_MAX)
        return false;
    *out = 0;
    for (size_t i = 0; i < at->token.len; i++) {
        char digit = at->sql[at->token.offset + i];
        if (digit < '0' || digit > '9')
            return false; /* 1e3, 0x10, 1.5 */
        *out = 10 * *out + (digit - '0');
    }
    *out = minus ? -*out : *out;
    read_next(at);
    return true;
}

/* Behind an IN: "(1, 3)".  False: it is anything else, or there is no memory. */
static bool read_list(struct prb_pushed *pushed, struct reading at)
{
    read_next(&at);
    if (!is_sign(&at, '('))
        return false;
    do {
        read_next(&at);
        if (!PRB_GROW(pushed->listed, pushed->listed_count, pushed->listed_cap) ||
            !read_number(&at, &pushed->listed[pushed->listed_count]))
            return false;
        pushed->listed_count++;
    } while (is_sign(&at, ','));
    return is_sign(&at, ')');
}

void prb_pushed_read(struct prb_pushed *pushed, const char *sql, size_t len)
{
    static const char *const grouping[] = {"group", "distinct", "count"};
    bool limited = false, direct = true;
    size_t selects = 0;
    for (size_t offset = 0; offset < len;) {
        struct prb_token token = prb_token_at(sql, len, offset);
        offset = token.offset + token.len;
        if (token.kind != PRB_TOKEN_WORD)
            continue;
        limited = limited || prb_token_is(sql, &token, "limit");
        selects += prb_token_is(sql, &token, "select");
        if (prb_token_is(sql, &token, "in"))
            pushed->unlisted =
                !read_list(pushed, (struct reading){sql, len, offset, token}) || pushed->unlisted;
        pushed->alternatives = pushed->alternatives || prb_token_is(sql, &token, "or");
        direct = direct && !is_in(sql, &token, between, sizeof between / sizeof *between);
        pushed->grouped =
            pushed->grouped || is_in(sql, &token, grouping, sizeof grouping / sizeof *grouping);
    }
    pushed->first_rows = limited && direct && selects == 1;
    pushed->unlisted = pushed->unlisted || pushed->alternatives; /* a = 1 OR a = 2 is an IN, too */
}

/* ---- the terms of one call ---- */

static int op_of(unsigned char op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return PRB_TERM_EQ;
    case SQLITE_INDEX_CONSTRAINT_LT:
        return PRB_TERM_LT;
    case SQLITE_INDEX_CONSTRAINT_LE:
        return PRB_TERM_LE;
    case SQLITE_INDEX_CONSTRAINT_GT:
        return PRB_TERM_GT;
    case SQLITE_INDEX_CONSTRAINT_GE:
        return PRB_TERM_GE;
    case SQLITE_INDEX_CONSTRAINT_IS:
        return PRB_TERM_IS;
    case SQLITE_INDEX_CONSTRAINT_ISNULL:
        return PRB_TERM_IS_NULL;
    default:
        return -1;
    }
}

/* The constant of a term, borrowed until the call ends.  False: it is none. */
static bool constant(sqlite3_index_info *info, int term, struct prb_value *out)
{
    sqlite3_value *value = prb_sqlite_rhs_value(info, term);
    *out = (struct prb_value){.type = PRB_NULL_VALUE};
    if (!value)
        return false;
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        *out = (struct prb_value){.type = PRB_INTEGER, .integer = sqlite3_value_int64(value)};
        return true;
    case SQLITE_FLOAT:
        *out = (struct prb_value){.type = PRB_REAL, .real = sqlite3_value_double(value)};
        return true;
    case SQLITE_TEXT:
        *out = (struct prb_value){.type = PRB_TEXT,
                                  .text = (const char *)sqlite3_value_text(value),
                                  .length = (size_t)sqlite3_value_bytes(value)};
        return out->text;
    default:
        return sqlite3_value_type(value) == SQLITE_NULL;
    }
}

/* Whether comparing needs no affinity: the constant is of the column's own class. */
static bool same_class(enum prb_type column, const struct prb_value *value)
{
    if (value->type == PRB_REAL && !isfinite(value->real))
        return false;
    if (column == PRB_INTEGER || column == PRB_REAL)
        return value->type == PRB_INTEGER || value->type == PRB_REAL;
    return column == PRB_TEXT && value->type == PRB_TEXT && value->length <= TEXT_MAX_ &&
           !memchr(value->text, '\0', value->length) &&
           prb_utf8_prefix(value->text, value->length) == value->length;
}

static bool is_argument(const struct prb_table *table, int column)
{
    return table->columns[column].hidden && !table->columns[column].aside;
}

bool prb_pushed_is_list(const struct prb_pushed *pushed, const struct prb_table *table,
                        sqlite3_index_info *info, int term)
{
    int column = info->aConstraint[term].iColumn;
    return table->fetched && !pushed->unlisted && pushed->listed_count && column >= 0 &&
           table->columns[column].of_rank && info->aConstraint[term].usable &&
           info->aConstraint[term].op == SQLITE_INDEX_CONSTRAINT_EQ && prb_sqlite_is_in(info, term);
}

/* Its values come at once: else SQLite would plan again as if it were not there. */
static bool take_list(const struct prb_pushed *pushed, const struct prb_table *table,
                      sqlite3_index_info *info, int i, struct prb_term *out)
{
    int column = info->aConstraint[i].iColumn;
    if (!prb_pushed_is_list(pushed, table, info, i))
        return false;
    prb_sqlite_take_in(info, i);
    *out = (struct prb_term){
        .column = (size_t)column, .op = PRB_TERM_IN, .value = {.type = PRB_NULL_VALUE}};
    return true;
}

/* A term of the call that may be taken.  *value_out is borrowed. */
static bool take(const struct prb_table *table, sqlite3_index_info *info, int i,
                 struct prb_term *out)
{
    int op = op_of(info->aConstraint[i].op), column = info->aConstraint[i].iColumn;
    struct prb_value value = {.type = PRB_NULL_VALUE};
    if (op < 0 || column < 0 || !info->aConstraint[i].usable || is_argument(table, column))
        return false;
    if (op != PRB_TERM_IS_NULL) {
        const char *collation = sqlite3_vtab_collation(info, i);
        if (!constant(info, i, &value) || !collation || strcmp(collation, "BINARY") != 0)
            return false;
        if (op == PRB_TERM_IS && value.type == PRB_NULL_VALUE)
            op = PRB_TERM_IS_NULL;
        else if (!same_class(table->columns[column].type, &value))
            return false;
    }
    *out = (struct prb_term){.column = (size_t)column, .op = (enum prb_term_op)op, .value = value};
    return true;
}

bool prb_term_set_add(struct prb_term_set *set, const struct prb_term *term)
{
    if (!PRB_GROW(set->terms, set->count, set->cap) ||
        !prb_value_copy(&term->value, &set->terms[set->count].value))
        return false;
    set->terms[set->count].column = term->column;
    set->terms[set->count++].op = term->op;
    return true;
}

static bool add_terms(struct prb_term_set *set, const struct prb_pushed *pushed,
                      const struct prb_table *table, sqlite3_index_info *info, int *count)
{
    for (int i = 0; i < info->nConstraint; i++) {
        struct prb_term term;
        if (!take_list(pushed, table, info, i, &term) && !take(table, info, i, &term))
            continue;
        if (!prb_term_set_add(set, &term))
            return false;
        if (!info->aConstraintUsage[i].argvIndex)
            info->aConstraintUsage[i].argvIndex = ++*count;
    }
    return true;
}

static bool add_arguments(struct prb_term_set *set, sqlite3_index_info *info, const int *arguments)
{
    for (size_t i = 0; i < PRB_ARGUMENTS_MAX; i++) {
        struct prb_value value;
        if (!arguments[i])
            continue;
        if (!constant(info, arguments[i] - 1, &value)) {
            set->unknown = true;
            continue;
        }
        if (!prb_value_copy(&value, &set->arguments[i].value))
            return false;
        set->arguments[i].given = true;
    }
    return true;
}

/* ---- LIMIT ---- */

/* A LIMIT or OFFSET; -1: none that is known. */
static int64_t number_of(sqlite3_index_info *info, int op)
{
    for (int i = 0; i < info->nConstraint; i++) {
        struct prb_value value;
        if (info->aConstraint[i].op == op && constant(info, i, &value) &&
            value.type == PRB_INTEGER && value.integer >= 0)
            return value.integer;
    }
    return -1;
}

static bool has_term(const sqlite3_index_info *info, int op)
{
    for (int i = 0; i < info->nConstraint; i++)
        if (info->aConstraint[i].op == op)
            return true;
    return false;
}

static void add_limit(struct prb_term_set *set, const struct prb_table *table,
                      sqlite3_index_info *info)
{
    int64_t limit = number_of(info, SQLITE_INDEX_CONSTRAINT_LIMIT), offset = 0;
    if (has_term(info, SQLITE_INDEX_CONSTRAINT_OFFSET) &&
        (offset = number_of(info, SQLITE_INDEX_CONSTRAINT_OFFSET)) < 0)
        return;
    if (limit < 0 || limit > INT64_MAX - offset || info->nOrderBy > PRB_PUSHED_ORDER_MAX)
        return;
    for (int i = 0; i < info->nOrderBy; i++) {
        int column = info->aOrderBy[i].iColumn;
        if (column < 0 || is_argument(table, column))
            return;
        set->order[i].column = (size_t)column;
        set->order[i].descending = info->aOrderBy[i].desc;
    }
    set->order_count = (size_t)info->nOrderBy;
    set->limit = limit + offset;
}

/* ---- the sets ---- */

static bool same_term(const struct prb_term *a, const struct prb_term *b)
{
    return a->column == b->column && a->op == b->op && prb_value_equal(&a->value, &b->value);
}

static bool same_set(const struct prb_term_set *a, const struct prb_term_set *b)
{
    if (a->table != b->table || a->unknown != b->unknown || a->count != b->count ||
        a->limit != b->limit || a->order_count != b->order_count)
        return false;
    for (size_t i = 0; i < a->order_count; i++)
        if (a->order[i].column != b->order[i].column ||
            a->order[i].descending != b->order[i].descending)
            return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same_term(&a->terms[i], &b->terms[i]))
            return false;
    return prb_arguments_equal(a->arguments, b->arguments);
}

int prb_pushed_add(struct prb_pushed *pushed, const struct prb_table *table, size_t index,
                   sqlite3_index_info *info, const int *arguments, int *count, size_t *number_out)
{
    PRB_AUTO(prb_term_set) struct prb_term_set set = {.table = index, .limit = -1};
    if (!add_arguments(&set, info, arguments) || !add_terms(&set, pushed, table, info, count))
        return SQLITE_NOMEM;
    if (pushed->first_rows)
        add_limit(&set, table, info);
    if (pushed->count >= SETS_MAX) { /* all rows, for which there is one set for each table */
        for (size_t i = 0; i < set.count; i++)
            free((char *)set.terms[i].value.text);
        set.count = 0;
        set.limit = -1;
        set.order_count = 0;
    }
    for (size_t i = 0; i < pushed->count; i++)
        if (same_set(&pushed->sets[i], &set)) {
            *number_out = i;
            return SQLITE_OK;
        }
    if (!PRB_GROW(pushed->sets, pushed->count, pushed->cap))
        return SQLITE_NOMEM;
    *number_out = pushed->count;
    pushed->sets[pushed->count++] = set;
    set = (struct prb_term_set){0}; /* it is the list's now */
    return SQLITE_OK;
}

/* ---- rows ---- */

/* Exact, also where the integer has more bits than a double. */
static int compare_mixed(int64_t integer, double real)
{
    if (real >= 9223372036854775808.0)
        return -1;
    if (real < -9223372036854775808.0)
        return 1;
    int64_t whole = (int64_t)real;
    if (integer != whole)
        return integer < whole ? -1 : 1;
    double rest = real - (double)whole;
    return (rest < 0) - (rest > 0);
}

int prb_numbers_compare(const struct prb_value *a, const struct prb_value *b)
{
    if (a->type == PRB_INTEGER && b->type == PRB_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    if (a->type == PRB_INTEGER)
        return compare_mixed(a->integer, b->real);
    if (b->type == PRB_INTEGER)
        return -compare_mixed(b->integer, a->real);
    return (a->real > b->real) - (a->real < b->real);
}

int prb_texts_compare(const struct prb_value *a, const struct prb_value *b)
{
    size_t common = a->length < b->length ? a->length : b->length;
    int order = common ? memcmp(a->text, b->text, common) : 0;
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static bool is_number(const struct prb_value *value)
{
    return value->type == PRB_INTEGER || value->type == PRB_REAL;
}

bool prb_term_holds(const struct prb_term *term, enum prb_type column_type,
                    const struct prb_value *value)
{
    bool null = value->type == PRB_NULL_VALUE || (value->type == PRB_REAL && isnan(value->real));
    if (term->op == PRB_TERM_IN)
        return true;
    if (term->op == PRB_TERM_IS_NULL)
        return null;
    if (null)
        return false;
    bool numbers = is_number(value) && is_number(&term->value);
    bool texts = value->type == PRB_TEXT && term->value.type == PRB_TEXT;
    if (!(numbers && column_type != PRB_TEXT) && !(texts && column_type == PRB_TEXT))
        return true; /* a cell that is not of its column's type: SQLite knows */
    int order =
        numbers ? prb_numbers_compare(value, &term->value) : prb_texts_compare(value, &term->value);
    switch (term->op) {
    case PRB_TERM_LT:
        return order < 0;
    case PRB_TERM_LE:
        return order <= 0;
    case PRB_TERM_GT:
        return order > 0;
    case PRB_TERM_GE:
        return order >= 0;
    default:
        return order == 0;
    }
}

bool prb_pushed_rank_holds(const struct prb_pushed *pushed, const struct prb_term *term, int rank)
{
    const struct prb_value value = {.type = PRB_INTEGER, .integer = rank, .text = ""};
    if (term->op != PRB_TERM_IN) /* its row may have NULL instead */
        return term->op == PRB_TERM_IS_NULL || prb_term_holds(term, PRB_INTEGER, &value);
    for (size_t i = 0; i < pushed->listed_count; i++)
        if (pushed->listed[i] == rank)
            return true;
    return false;
}
