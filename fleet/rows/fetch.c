/* The rows that one statement reads, fetched with one question, and given to its tables. */
#include <string.h>

#include "fleet/rows/pack.h"
#include "fleet/rows/source.h"

#define NOTE_MOST 280 /* bytes of what a rank says that are shown */

static bool is_own(const struct prb_table *table, size_t column)
{
    const struct prb_united *united = (const struct prb_united *)table;
    for (int i = 0; i < PRB_ADDED; i++)
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

static bool add_set(struct prb_rows_source *source, struct prb_db *db,
                    const struct prb_term_set *set, struct prb_error *err)
{
    const struct prb_table *table = db->tables[set->table];
    if (table->fill != prb_united_fill || set->unknown)
        return true;
    struct prb_asked *asked = find_asked(&source->ask, table, set->arguments);
    if (!asked && !(asked = add_asked(&source->ask, db, set)))
        return prb_nomem(err);
    asked->sets[asked->set_count++] = *set; /* borrowed */
    take_limit(asked, set);
    return true;
}

/* The table of which the most came, and of how many ranks. */
static bool over(const struct prb_rows_source *source, const struct prb_answers *answers,
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
                                 "probing.cluster.max_rows, max_bytes or host_bytes");
}

void prb_rows_forget(void *context)
{
    struct prb_rows_source *source = context;
    prb_ask_deinit(&source->ask);
    prb_answers_deinit(&source->answers);
}

/* Whether rows of a rank can be among those that a set of terms means. */
static bool set_wants(const struct prb_rows_source *source, const struct prb_table *table,
                      const struct prb_term_set *set, int rank)
{
    for (size_t i = 0; i < set->count; i++)
        if (table->columns[set->terms[i].column].of_rank &&
            !prb_pushed_rank_holds(source->pushed, &set->terms[i], rank))
            return false;
    return true;
}

static bool wants(const void *what, int rank)
{
    const struct prb_rows_source *source = what;
    for (size_t i = 0; i < source->ask.count; i++) {
        const struct prb_asked *asked = &source->ask.items[i];
        for (size_t k = 0; k < asked->set_count; k++)
            if (set_wants(source, asked->table, &asked->sets[k], rank))
                return true;
    }
    return false;
}

static bool ask_rows(struct prb_rows_source *source, const struct prb_db *db, struct prb_error *err)
{
    PRB_AUTO(json_t) json_t *json = prb_ask_json(&source->ask, &db->settings, is_own);
    PRB_AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    struct prb_answers *answers = &source->answers;
    answers->rows_max =
        source->asker.rows_max ? source->asker.rows_max : (size_t)db->settings.cluster_max_rows;
    answers->wants = wants;
    answers->what = source;
    answers->bytes_max =
        source->asker.bytes_max ? source->asker.bytes_max : (size_t)db->settings.cluster_max_bytes;
    if (!text)
        return prb_nomem(err);
    bool good = source->asker.ask(source->asker.context, "rows", text, answers, err);
    if (answers->over.code)
        return over(source, answers, err);
    prb_answers_sort(answers);
    return good;
}

/* What ranks say of their rows. */
static bool take_notes(struct prb_rows_source *source, struct prb_db *db, struct prb_error *err)
{
    size_t more = 0;
    int rank = -1, len = 0;
    const char *first = NULL;
    for (size_t i = 0; i < source->answers.count; i++) {
        const struct prb_answer *answer = &source->answers.items[i];
        struct prb_packed part;
        if (!prb_packed_open(answer->data, answer->len, &part, err))
            return prb_error_prefix(err, "rank %d", answer->rank);
        if (part.table_count != source->ask.count)
            return prb_fail(err, PRB_CORRUPT, "rank %d: it sent other tables than were asked for",
                            answer->rank);
        if (!part.note_len || more++)
            continue;
        first = part.note;
        len = (int)(part.note_len < NOTE_MOST ? part.note_len : NOTE_MOST);
        rank = answer->rank;
    }
    char others[40] = "";
    if (more > 1)
        snprintf(others, sizeof others, " (and %zu other rank%s)", more - 1, more == 2 ? "" : "s");
    if (more)
        prb_db_warn(db, "rank %d: %.*s%s", rank, len, first, others);
    return true;
}

bool prb_rows_fetch(struct prb_table_source *base, struct prb_db *db, struct prb_error *err)
{
    struct prb_rows_source *source = (struct prb_rows_source *)base;
    const struct prb_pushed *pushed = &db->view.pushed;
    prb_rows_forget(source);
    source->pushed = pushed;
    db->view.shared = source; /* until the statement ends */
    db->view.shared_free = prb_rows_forget;
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

/* -1: it stays NULL. */
static void set_number(struct prb_rows *rows, size_t first, int column, int number)
{
    if (number >= 0)
        set_cell(rows, first, column, (struct prb_cell){.type = PRB_INTEGER, .integer = number});
}

static void set_added(struct prb_rows *rows, size_t first, const struct prb_answer *answer)
{
    const struct prb_united *united = (const struct prb_united *)rows->table;
    struct prb_cell rank = {.type = PRB_INTEGER, .integer = answer->rank};
    struct prb_cell host = prb_rows_keep(rows, answer->host, strlen(answer->host), false);
    set_cell(rows, first, united->added[PRB_ADDED_RANK], rank);
    set_cell(rows, first, united->added[PRB_ADDED_HIDDEN_RANK], rank);
    set_cell(rows, first, united->added[PRB_ADDED_HOST], host);
    set_cell(rows, first, united->added[PRB_ADDED_HIDDEN_HOST], host);
    set_cell(rows, first, united->added[PRB_ADDED_ADDRESS], host);
    if (answer->role[0])
        set_cell(rows, first, united->added[PRB_ADDED_ROLE],
                 prb_rows_keep(rows, answer->role, strlen(answer->role), false));
    set_number(rows, first, united->added[PRB_ADDED_LOCAL_RANK], answer->local_rank);
    set_number(rows, first, united->added[PRB_ADDED_NODE_RANK], answer->node_rank);
}

bool prb_united_fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_rows_source *source = prb_rows_db(rows)->view.shared;
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
