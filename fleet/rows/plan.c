/* What was fetched for a statement, as rows. */
#include <string.h>

#include "fleet/rows/pack.h"
#include "fleet/rows/source.h"

#define LISTED_SHOWN 32

static void add_value(struct prb_buf *out, const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        prb_buf_addf(out, " %lld", (long long)value->integer);
    else if (value->type == PRB_REAL)
        prb_buf_addf(out, " %.17g", value->real);
    else
        prb_buf_addf(out, " '%.80s'", value->text);
}

static void add_list(struct prb_buf *out, const struct prb_pushed *pushed)
{
    for (size_t i = 0; i < pushed->listed_count && i < LISTED_SHOWN; i++)
        prb_buf_addf(out, "%s%lld", i ? ", " : " (", (long long)pushed->listed[i]);
    prb_buf_adds(out, pushed->listed_count > LISTED_SHOWN ? ", …)" : ")");
}

static void add_filter(struct prb_buf *out, const struct prb_rows_source *source,
                       const struct prb_asked *asked)
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
            if (term->op == PRB_TERM_IN)
                add_list(out, source->pushed);
            else if (term->op != PRB_TERM_IS_NULL)
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

static bool sum_host(const struct prb_rows_source *source, size_t which, struct of_host *out,
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

static bool plan_table(const struct prb_rows_source *source, size_t which,
                       const struct planning *planning, struct prb_error *err)
{
    const struct prb_asked *asked = &source->ask.items[which];
    PRB_AUTO(prb_buf) struct prb_buf columns = {0}, filter = {0};
    char name[2 * PRB_TABLE_NAME_MAX + 2];
    add_columns(&columns, asked);
    add_filter(&filter, source, asked);
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

bool prb_rows_plan(struct prb_table_source *base, struct prb_db *db, prb_row_fn *each,
                   void *context, struct prb_error *err)
{
    const struct prb_rows_source *source = (const struct prb_rows_source *)base;
    const struct planning planning = {each, context};
    (void)db;
    if (each && !each(context, PLAN_COLUMNS, plan_names, NULL))
        return true;
    for (size_t i = 0; i < source->ask.count; i++)
        if (!plan_table(source, i, &planning, err))
            return false;
    return true;
}
