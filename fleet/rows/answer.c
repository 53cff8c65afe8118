/* A rank's side of "rows": its tables are read at one moment, and what is asked of them is sent. */
#include <math.h>
#include <string.h>

#include "base/index.h"
#include "fleet/rows/ask.h"
#include "fleet/rows/bytes.h"
#include "fleet/rows/pack.h"
#include "fleet/rows/rows.h"

/* ---- which rows ---- */

/* Rows of a table by their numbers, and how many each stands for. */
struct chosen {
    const struct prb_asked *asked;
    const struct prb_rows *rows;
    uint32_t *numbers, *repeats;
    size_t count;
    bool folded;
    struct prb_index index;
};

static void chosen_deinit(struct chosen *chosen)
{
    free(chosen->numbers);
    free(chosen->repeats);
    prb_index_deinit(&chosen->index);
}
PRB_DEFINE_AUTO(chosen, struct chosen, chosen_deinit)

static struct prb_value cell(const struct chosen *chosen, uint32_t row, int column)
{
    struct prb_value value = {.type = PRB_NULL_VALUE};
    if (column >= 0)
        value = prb_rows_value(chosen->rows, row, (size_t)column);
    if (value.type == PRB_REAL && isnan(value.real))
        value = (struct prb_value){.type = PRB_NULL_VALUE};
    return value;
}

static bool set_holds(const struct chosen *chosen, const struct prb_term_set *set, uint32_t row)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct prb_term *term = &set->terms[i];
        bool there = term->column != SIZE_MAX;
        struct prb_value value = cell(chosen, row, there ? (int)term->column : -1);
        enum prb_type type =
            there ? chosen->asked->table->columns[term->column].type : PRB_NULL_VALUE;
        if (!prb_term_holds(term, type, &value))
            return false;
    }
    return true;
}

static bool is_wanted(const struct chosen *chosen, uint32_t row)
{
    const struct prb_asked *asked = chosen->asked;
    bool any = asked->set_count == 0;
    for (size_t i = 0; i < asked->set_count && !any; i++)
        any = set_holds(chosen, &asked->sets[i], row);
    return any;
}

/* ---- the first of them ---- */

/* SQLite's order of classes: NULL, numbers, texts, blobs. */
static int class_of(const struct prb_value *value)
{
    static const int classes[] = {
        [PRB_NULL_VALUE] = 0, [PRB_INTEGER] = 1, [PRB_REAL] = 1, [PRB_TEXT] = 2, [PRB_BLOB] = 3};
    return classes[value->type];
}

static int compare_values(const struct prb_value *a, const struct prb_value *b)
{
    int order = class_of(a) - class_of(b);
    if (order || class_of(a) == 0)
        return order;
    return class_of(a) == 1 ? prb_numbers_compare(a, b) : prb_texts_compare(a, b);
}

static int by_order(const void *a, const void *b, void *context)
{
    const struct chosen *chosen = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    for (size_t i = 0; i < chosen->asked->order_count; i++) {
        int column = chosen->asked->order[i].column;
        struct prb_value left = cell(chosen, x, column), right = cell(chosen, y, column);
        int order = compare_values(&left, &right);
        if (order)
            return chosen->asked->order[i].descending ? -order : order;
    }
    return (x > y) - (x < y);
}

static void cut(struct chosen *chosen)
{
    const struct prb_asked *asked = chosen->asked;
    if (asked->limit < 0 || (uint64_t)asked->limit >= chosen->count)
        return;
    if (asked->order_count)
        qsort_r(chosen->numbers, chosen->count, sizeof *chosen->numbers, by_order, chosen);
    chosen->count = (size_t)asked->limit;
}

/* ---- equal ones ---- */

static uint64_t hash_value(const struct prb_value *value)
{
    uint64_t bits = 0;
    if (value->type == PRB_INTEGER)
        bits = (uint64_t)value->integer;
    else if (value->type == PRB_REAL)
        memcpy(&bits, &value->real, sizeof bits);
    else if (value->type != PRB_NULL_VALUE)
        bits = prb_hash_bytes(value->text, value->length);
    return prb_hash_words(bits, value->type);
}

static uint64_t hash_row(const struct chosen *chosen, uint32_t row)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < chosen->asked->column_count; i++) {
        struct prb_value value = cell(chosen, row, chosen->asked->columns[i]);
        hash = prb_hash_words(hash, hash_value(&value));
    }
    return hash;
}

/* Bit by bit: 0.0 and -0.0 are two values for whoever prints them. */
static bool same_value(const struct prb_value *a, const struct prb_value *b)
{
    if (a->type == PRB_REAL && b->type == PRB_REAL)
        return memcmp(&a->real, &b->real, sizeof a->real) == 0;
    return prb_value_equal(a, b);
}

static bool same_row(const struct chosen *chosen, uint32_t x, uint32_t y)
{
    for (size_t i = 0; i < chosen->asked->column_count; i++) {
        struct prb_value a = cell(chosen, x, chosen->asked->columns[i]);
        struct prb_value b = cell(chosen, y, chosen->asked->columns[i]);
        if (!same_value(&a, &b))
            return false;
    }
    return true;
}

static uint64_t hash_chosen(const void *items, uint32_t item)
{
    const struct chosen *chosen = items;
    return hash_row(chosen, chosen->numbers[item]);
}

static bool is_chosen(const void *items, uint32_t item, const void *key)
{
    const struct chosen *chosen = items;
    return same_row(chosen, chosen->numbers[item], *(const uint32_t *)key);
}

static const struct prb_index_kind chosen_kind = {hash_chosen, is_chosen};

#define TRY_ROWS 4096 /* after which few equal ones end the search for more */

/* Which of the first kept rows is equal to this one; SIZE_MAX: none. */
static bool find_equal(struct chosen *chosen, size_t kept, size_t seen, uint32_t row, size_t *out)
{
    bool few = seen > TRY_ROWS && kept > seen / 4 * 3;
    *out = SIZE_MAX;
    if (kept && same_row(chosen, chosen->numbers[kept - 1], row))
        *out = kept - 1;
    if (*out != SIZE_MAX || !chosen->asked->column_count || few || !chosen->folded)
        return true;
    uint64_t hash = hash_row(chosen, row);
    uint32_t found = prb_index_find(&chosen->index, &chosen_kind, chosen, hash, &row);
    if (found != PRB_NO_ITEM) {
        *out = found;
        return true;
    }
    chosen->numbers[kept] = row;
    return prb_index_add(&chosen->index, &chosen_kind, chosen, hash, (uint32_t)kept);
}

/* everywhere: also where they are no neighbours, which moves rows. */
static bool fold(struct chosen *chosen, bool everywhere)
{
    size_t kept = 0;
    chosen->folded = everywhere;
    chosen->repeats = malloc((chosen->count + 1) * sizeof *chosen->repeats);
    if (!chosen->repeats)
        return false;
    for (size_t i = 0; i < chosen->count; i++) {
        uint32_t row = chosen->numbers[i];
        size_t same;
        if (!find_equal(chosen, kept, i, row, &same))
            return false;
        if (same != SIZE_MAX) {
            chosen->repeats[same]++;
            continue;
        }
        chosen->numbers[kept] = row;
        chosen->repeats[kept++] = 1;
    }
    if (kept == chosen->count) {
        free(chosen->repeats);
        chosen->repeats = NULL;
    }
    chosen->count = kept;
    return true;
}

/* ---- one table ---- */

static bool is_time(const struct prb_column *column)
{
    return column->type == PRB_REAL && !column->hidden &&
           (strcmp(column->name, "timestamp") == 0 || strcmp(column->name, "time") == 0 ||
            strcmp(column->name, "ts") == 0);
}

/* What a set says of a time. */
static void narrow(const struct prb_term_set *set, size_t column, double *least, double *most)
{
    *least = -INFINITY;
    *most = INFINITY;
    for (size_t i = 0; i < set->count; i++) {
        const struct prb_term *term = &set->terms[i];
        if (term->column != column || term->op == PRB_TERM_IS_NULL)
            continue;
        double value =
            term->value.type == PRB_INTEGER ? (double)term->value.integer : term->value.real;
        bool above = term->op == PRB_TERM_GT || term->op == PRB_TERM_GE;
        bool below = term->op == PRB_TERM_LT || term->op == PRB_TERM_LE;
        if (!below && value > *least)
            *least = value;
        if (!above && value < *most)
            *most = value;
    }
}

/* The times that any of the sets wants, for tables that can leave out others. */
static struct prb_times times_of(const struct prb_asked *asked)
{
    struct prb_times times = {NULL, INFINITY, -INFINITY};
    const struct prb_column *columns = asked->table->columns;
    size_t column = 0;
    while (columns[column].name && !is_time(&columns[column]))
        column++;
    if (!asked->table->timed || !asked->set_count || !columns[column].name)
        return (struct prb_times){0};
    for (size_t i = 0; i < asked->set_count; i++) {
        double least, most;
        narrow(&asked->sets[i], column, &least, &most);
        times.least = least < times.least ? least : times.least;
        times.most = most > times.most ? most : times.most;
    }
    times.column = columns[column].name;
    return times;
}

static bool choose(struct prb_db *db, const struct prb_asked *asked, bool grouped,
                   struct chosen *out, struct prb_error *err)
{
    const struct prb_times times = times_of(asked);
    *out = (struct chosen){.asked = asked};
    if (!(out->rows = prb_db_rows(db, asked->index, asked->arguments, &times, err)))
        return false;
    out->numbers = malloc((out->rows->count + 1) * sizeof *out->numbers);
    if (!out->numbers)
        return prb_nomem(err);
    for (size_t row = 0; row < out->rows->count; row++)
        if (is_wanted(out, (uint32_t)row))
            out->numbers[out->count++] = (uint32_t)row;
    cut(out);
    return fold(out, grouped && asked->limit < 0) || prb_nomem(err);
}

static bool pack(struct prb_db *db, const struct prb_asked *asked, bool grouped,
                 struct prb_buf *out, struct prb_error *err)
{
    if (!asked->table)
        return prb_pack_table(out, NULL, err);
    PRB_AUTO(chosen) struct chosen chosen = {0};
    if (!choose(db, asked, grouped, &chosen, err))
        return false;
    const struct prb_packing packing = {.rows = chosen.rows,
                                        .columns = asked->columns,
                                        .column_count = asked->column_count,
                                        .chosen = chosen.numbers,
                                        .repeats = chosen.repeats,
                                        .count = chosen.count};
    return prb_pack_table(out, &packing, err);
}

/* ---- all tables ---- */

static void want(uint64_t *wanted, int column)
{
    if (column >= 0)
        *wanted |= (uint64_t)1 << (column < 63 ? column : 63);
}

/* What the whole question uses is known before the first table is read, as in a statement. */
static void note_needs(struct prb_db *db, const struct prb_ask *ask)
{
    db->view.needs |= ask->needs;
    for (size_t i = 0; i < ask->count; i++) {
        const struct prb_asked *asked = &ask->items[i];
        if (!asked->table)
            continue;
        uint64_t *wanted = &db->view.wanted[asked->index];
        for (size_t k = 0; k < asked->column_count; k++)
            want(wanted, asked->columns[k]);
        for (size_t k = 0; k < asked->order_count; k++)
            want(wanted, asked->order[k].column);
        for (size_t k = 0; k < asked->set_count; k++)
            for (size_t t = 0; t < asked->sets[k].count; t++)
                if (asked->sets[k].terms[t].column != SIZE_MAX)
                    want(wanted, (int)asked->sets[k].terms[t].column);
        db->view.needs |= asked->table->needs;
        for (size_t c = 0; asked->table->columns[c].name; c++)
            if (prb_column_in(*wanted, c))
                db->view.needs |= asked->table->columns[c].needs;
    }
}

static bool answer(struct prb_db *db, const struct prb_ask *ask, size_t bytes_max,
                   struct prb_buf *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf tables = {0};
    note_needs(db, ask);
    for (size_t i = 0; i < ask->count; i++) {
        if (!pack(db, &ask->items[i], ask->grouped, &tables, err))
            return false;
        if (tables.len <= bytes_max)
            continue;
        prb_buf_adds(out, PRB_PACKED_OVER);
        prb_buf_addf(out, "%s.%s has more than %.3g MiB", ask->items[i].table->schema,
                     ask->items[i].table->name, (double)bytes_max / (1 << 20));
        return prb_buf_ok(out) || prb_nomem(err);
    }
    prb_pack_begin(out, db->warning[0] ? db->warning : NULL, ask->count);
    prb_buf_add(out, tables.data, tables.len);
    return (prb_buf_ok(&tables) && prb_buf_ok(out)) || prb_nomem(err);
}

bool prb_rows_answer(struct prb_db *db, const json_t *args, size_t bytes_max, struct prb_buf *out,
                     struct prb_error *err)
{
    PRB_AUTO(prb_ask) struct prb_ask ask = {0};
    db->warning[0] = '\0';
    if (!prb_db_refresh(db, err) || !prb_ask_parse(args, db, &ask, &db->settings, err) ||
        !prb_view_begin(db, err))
        return false;
    bool good = answer(db, &ask, bytes_max, out, err);
    prb_view_end(db);
    return good;
}
