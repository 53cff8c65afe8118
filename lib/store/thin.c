/*
 * Old rows of a file: see thin.h.
 *
 * Chunks of one table, process and resolution are read one after another, oldest first, until what
 * they give fills a chunk; that one is written and they are removed in one transaction.  A chunk
 * that is damaged stays where it is.
 */
#include "store/thin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/real.h"
#include "store/drain.h"
#include "store/file_parts.h"

#define ROWS PRB_STORE_CHUNK_ROWS /* of a chunk that is full */
#define JOINED_MIN 8              /* chunks, or three quarters of a full one's rows, are joined */
#define BATCH_CHUNKS 4096
#define BATCH_ROWS 262144 /* what they are made of takes memory, too */

/* ---- rows that become one ---- */

enum { KEY, SUM, LAST, MEAN, TIME }; /* what a column is */

struct group {
    int64_t bucket, weight;
    int64_t *known;                 /* for each column: of the weight, what was not NULL */
    struct prb_ring_value values[]; /* of the first row; texts in the arena */
};

struct merging {
    const struct prb_store_shape *shape;
    const struct prb_store_rule *rule; /* NULL: rows are taken as they are */
    double span;                       /* s: a minute or an hour */
    uint8_t kinds[PRB_RING_COLUMNS_MAX];
    struct group *row; /* the one that is added */
    struct group **groups;
    size_t count, cap;
    struct prb_index index;
    struct prb_arena arena;
};

static void merging_deinit(struct merging *merging)
{
    prb_index_deinit(&merging->index);
    prb_arena_deinit(&merging->arena);
    free(merging->groups);
    free(merging->row);
}
PRB_DEFINE_AUTO(merging, struct merging, merging_deinit)

static bool is_text(const struct merging *merging, size_t column)
{
    return merging->shape->columns[column].type == PRB_RING_TEXT;
}

static bool is_real(const struct merging *merging, size_t column)
{
    enum prb_ring_type type = merging->shape->columns[column].type;
    return type == PRB_RING_REAL || type == PRB_RING_TIME;
}

static bool is_among(const char *name, const char *names)
{
    size_t len = strlen(name);
    for (const char *at = names; at && (at = strstr(at, name)); at += len)
        if ((at == names || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
    return false;
}

/* False: the table has no such time. */
static bool set_kinds(struct merging *merging)
{
    const struct prb_store_rule *rule = merging->rule;
    bool timed = false;
    for (size_t i = 0; i < merging->shape->count; i++) {
        const char *name = merging->shape->columns[i].name;
        bool time = strcmp(name, rule->time) == 0 && is_real(merging, i);
        merging->kinds[i] = time                          ? TIME
                            : is_among(name, rule->keys)  ? KEY
                            : is_text(merging, i)         ? LAST
                            : is_among(name, rule->sums)  ? SUM
                            : is_among(name, rule->lasts) ? LAST
                                                          : MEAN;
        timed = timed || time;
    }
    return timed;
}

static bool same_value(const struct merging *merging, size_t column, const struct prb_ring_value *a,
                       const struct prb_ring_value *b)
{
    if (a->null || b->null)
        return a->null == b->null;
    return is_text(merging, column) ? a->len == b->len && memcmp(a->text, b->text, a->len) == 0
                                    : a->integer == b->integer;
}

static uint64_t hash_of(const struct merging *merging, int64_t bucket,
                        const struct prb_ring_value *values)
{
    uint64_t hash = (uint64_t)bucket;
    for (size_t i = 0; i < merging->shape->count; i++) {
        if (merging->kinds[i] != KEY)
            continue;
        uint64_t one = values[i].null        ? 1
                       : is_text(merging, i) ? prb_hash_bytes(values[i].text, values[i].len)
                                             : (uint64_t)values[i].integer;
        hash = prb_hash_words(hash, one);
    }
    return hash;
}

static uint64_t group_hash(const void *items, uint32_t item)
{
    const struct merging *merging = items;
    return hash_of(merging, merging->groups[item]->bucket, merging->groups[item]->values);
}

static bool group_is(const void *items, uint32_t item, const void *key)
{
    const struct merging *merging = items;
    const struct group *group = merging->groups[item], *wanted = key;
    bool same = group->bucket == wanted->bucket;
    for (size_t i = 0; same && i < merging->shape->count; i++)
        same = merging->kinds[i] != KEY ||
               same_value(merging, i, &group->values[i], &wanted->values[i]);
    return same;
}

/* A sum while rows are added: of numbers times the weight where it becomes a mean. */
static double number_of(const struct merging *merging, size_t column,
                        const struct prb_ring_value *value)
{
    return is_real(merging, column) ? value->real : (double)value->integer;
}

static bool keep_text(struct merging *merging, struct prb_ring_value *value)
{
    if (value->null)
        return true;
    const char *copy = prb_arena_strndup(&merging->arena, value->text, value->len);
    value->text = copy;
    return copy;
}

/* Means are sums of doubles until the end, whatever the column's type. */
static bool begin_group(struct merging *merging, struct group *group, uint64_t hash)
{
    for (size_t i = 0; i < merging->shape->count; i++) {
        struct prb_ring_value *value = &group->values[i];
        if (is_text(merging, i) && !keep_text(merging, value))
            return false;
        group->known[i] = value->null ? 0 : group->weight;
        if (merging->kinds[i] == MEAN && !value->null)
            value->real = number_of(merging, i, value) * (double)group->weight;
        if (merging->kinds[i] == TIME && !value->null)
            value->real = (double)group->bucket * merging->span;
    }
    if (!PRB_GROW(merging->groups, merging->count, merging->cap))
        return false;
    merging->groups[merging->count] = group;
    static const struct prb_index_kind kind = {group_hash, group_is};
    return prb_index_add(&merging->index, &kind, merging, hash, (uint32_t)merging->count++);
}

static bool add_to_group(struct merging *merging, struct group *group, const struct group *row)
{
    for (size_t i = 0; i < merging->shape->count; i++) {
        struct prb_ring_value *value = &group->values[i];
        const struct prb_ring_value *more = &row->values[i];
        if (more->null || merging->kinds[i] == KEY || merging->kinds[i] == TIME)
            continue;
        double number = is_text(merging, i) ? 0 : number_of(merging, i, more);
        if (merging->kinds[i] == LAST) {
            bool same = same_value(merging, i, value, more);
            *value = *more;
            if (is_text(merging, i) && !same && !keep_text(merging, value))
                return false;
        } else if (merging->kinds[i] == MEAN) {
            value->real = (value->null ? 0 : value->real) + number * (double)row->weight;
            value->null = false;
            group->known[i] += row->weight;
        } else if (is_real(merging, i)) {
            value->real = (value->null ? 0 : value->real) + number;
            value->null = false;
        } else {
            uint64_t before = value->null ? 0 : (uint64_t)value->integer;
            value->integer = (int64_t)(before + (uint64_t)more->integer);
            value->null = false;
        }
    }
    group->weight += row->weight;
    return true;
}

static struct group *group_new(struct merging *merging, const struct group *row)
{
    size_t count = merging->shape->count, bytes = count * sizeof *row->values;
    struct group *group = prb_arena_alloc(&merging->arena, sizeof *group + bytes);
    int64_t *known = prb_arena_alloc(&merging->arena, count * sizeof *known);
    if (!group || !known)
        return NULL;
    memcpy(group, row, sizeof *group + bytes);
    group->known = known;
    return group;
}

/* False: no memory. */
static bool merge_row(struct merging *merging, const struct prb_ring_value *values, size_t time)
{
    static const struct prb_index_kind kind = {group_hash, group_is};
    struct group *row = merging->row;
    memcpy(row->values, values, merging->shape->count * sizeof *values);
    row->weight = merging->rule->take_weight ? merging->rule->take_weight(row->values) : 1;
    double at = values[time].null ? 0 : values[time].real / merging->span;
    row->bucket = at > -1e15 && at < 1e15 ? (int64_t)prb_floor(at) : 0;
    uint64_t hash = hash_of(merging, row->bucket, row->values);
    uint32_t found = prb_index_find(&merging->index, &kind, merging, hash, row);
    if (found != PRB_NO_ITEM)
        return add_to_group(merging, merging->groups[found], row);
    struct group *group = group_new(merging, row);
    return group && begin_group(merging, group, hash);
}

/* To a billionth of what it is: more digits would be noise that packs badly. */
static double rounded(double value)
{
    double scale = fabs(value) < 1e3 ? 1e6 : 1e3, much = value * scale;
    return fabs(much) < 0x1p52 ? prb_round(much) / scale : value;
}

static void end_group(const struct merging *merging, struct group *group)
{
    for (size_t i = 0; i < merging->shape->count; i++) {
        struct prb_ring_value *value = &group->values[i];
        if (merging->kinds[i] != MEAN || value->null)
            continue;
        double mean = value->real / (double)(group->known[i] ? group->known[i] : 1);
        if (is_real(merging, i))
            value->real = rounded(mean);
        else
            value->integer = mean > -0x1p62 && mean < 0x1p62 ? (int64_t)prb_round(mean) : 0;
    }
    if (merging->rule->put_weight)
        merging->rule->put_weight(group->values, group->weight);
}

/* ---- a batch of chunks ---- */

struct batch {
    struct prb_store_file *file;
    const struct prb_store_shape *shape;
    int64_t process;
    enum prb_store_resolution from, to;
    double before;   /* s since the epoch: chunks that end later stay */
    size_t rows_max; /* of a chunk that is taken */
    struct merging merging;
    size_t time;
    struct prb_store_rows *rows; /* that stay as they are */
    int64_t *ids;
    size_t count, cap;
    double first, last;
    uint64_t taken; /* rows */
    bool over;      /* there are no more chunks */
    double behind;  /* chunks that end before this were looked at */
};

static void batch_deinit(struct batch *batch)
{
    merging_deinit(&batch->merging);
    prb_store_rows_free(batch->rows);
    free(batch->ids);
}
PRB_DEFINE_AUTO(batch, struct batch, batch_deinit)

static bool is_full(const struct batch *batch)
{
    return batch->count >= BATCH_CHUNKS || batch->taken >= BATCH_ROWS ||
           batch->merging.count >= ROWS || prb_store_rows_count(batch->rows) >= ROWS;
}

static void value_at(const struct prb_store_column *column, size_t row, struct prb_ring_value *out)
{
    *out = (struct prb_ring_value){.null = column->nulls && column->nulls[row]};
    if (column->type == PRB_RING_TEXT) {
        out->text = column->texts[row].data;
        out->len = column->texts[row].len;
    } else {
        out->integer = column->integers[row];
    }
}

struct columns {
    struct prb_store_values values[PRB_RING_COLUMNS_MAX];
};
static void columns_deinit(struct columns *columns)
{
    for (size_t i = 0; i < PRB_RING_COLUMNS_MAX; i++)
        prb_store_values_deinit(&columns->values[i]);
}
PRB_DEFINE_AUTO(columns, struct columns, columns_deinit)

/* False: damaged, or of another table. */
static bool decode(const struct batch *batch, const char *bytes, size_t len,
                   struct prb_store_chunk *chunk, struct columns *columns)
{
    if (!bytes || !prb_store_chunk_open(bytes, len, chunk, NULL) ||
        chunk->columns != batch->shape->count)
        return false;
    for (size_t i = 0; i < chunk->columns; i++)
        if (chunk->entries[i].type != batch->shape->columns[i].type ||
            !prb_store_column_decode(batch->file->packer, bytes, len, &chunk->entries[i],
                                     chunk->rows, &columns->values[i], NULL))
            return false;
    return true;
}

static bool take_rows(struct batch *batch, const struct columns *columns, size_t rows,
                      struct prb_error *err)
{
    const struct prb_store_rule *rule = batch->merging.rule;
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX];
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < batch->shape->count; i++)
            value_at(&columns->values[i].column, row, &values[i]);
        bool stays = !rule || (rule->stays && rule->stays(values));
        if (stays && !prb_store_rows_add(batch->rows, values, err))
            return false;
        if (!stays && !merge_row(&batch->merging, values, batch->time))
            return prb_nomem(err);
    }
    return true;
}

/* The next chunks, until the batch is full. */
static bool fill(struct batch *batch, struct prb_error *err)
{
    PRB_AUTO(prb_store_row)
    sqlite3_stmt *list = prb_store_statement(batch->file, PRB_STORE_LIST_OLD, err);
    int rc;
    if (!list)
        return false;
    sqlite3_bind_int64(list, 1, batch->shape->id);
    sqlite3_bind_int64(list, 2, batch->process);
    sqlite3_bind_int(list, 3, (int)batch->from);
    sqlite3_bind_double(list, 4, batch->before);
    sqlite3_bind_double(list, 5, batch->behind);
    sqlite3_bind_int64(list, 6, (int64_t)batch->rows_max);
    while ((rc = sqlite3_step(list)) == SQLITE_ROW) {
        PRB_AUTO(columns) struct columns columns = {0};
        struct prb_store_chunk chunk;
        size_t rows = (size_t)sqlite3_column_int64(list, 3);
        if (is_full(batch) ||
            (!batch->merging.rule && prb_store_rows_count(batch->rows) + rows > ROWS))
            return true;
        batch->behind = sqlite3_column_double(list, 2);
        if (!decode(batch, sqlite3_column_blob(list, 4), (size_t)sqlite3_column_bytes(list, 4),
                    &chunk, &columns))
            continue;
        if (!PRB_GROW(batch->ids, batch->count, batch->cap))
            return prb_nomem(err);
        batch->ids[batch->count++] = sqlite3_column_int64(list, 0);
        batch->first = prb_lesser(batch->first, sqlite3_column_double(list, 1));
        batch->last = prb_greater(batch->last, sqlite3_column_double(list, 2));
        batch->taken += chunk.rows;
        if (!take_rows(batch, &columns, chunk.rows, err))
            return false;
    }
    batch->over = true;
    return rc == SQLITE_DONE || prb_store_failed(batch->file, err);
}

static bool write_rows(struct batch *batch, const struct prb_store_rows *rows,
                       enum prb_store_resolution resolution, struct prb_thinned *out,
                       struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_store_new_chunk chunk = {.shape = batch->shape->id,
                                        .process = batch->process,
                                        .first = batch->first,
                                        .last = batch->last,
                                        .resolution = resolution,
                                        .rows = prb_store_rows_count(rows)};
    if (!chunk.rows)
        return true;
    if (resolution != PRB_STORE_RAW) /* rows are told to be at the beginning of their time */
        chunk.first -= batch->merging.span;
    if (!prb_store_chunk_make(rows, batch->file->packer, &bytes, err))
        return false;
    chunk.bytes = bytes.data;
    chunk.len = bytes.len;
    out->made++;
    return prb_store_add_chunk(batch->file, &chunk, err);
}

static bool write_groups(struct batch *batch, struct prb_thinned *out, struct prb_error *err)
{
    prb_store_rows_clear(batch->rows);
    for (size_t i = 0; i < batch->merging.count; i++) {
        end_group(&batch->merging, batch->merging.groups[i]);
        if (!prb_store_rows_add(batch->rows, batch->merging.groups[i]->values, err))
            return false;
        if (prb_store_rows_count(batch->rows) < ROWS)
            continue;
        if (!write_rows(batch, batch->rows, batch->to, out, err))
            return false;
        prb_store_rows_clear(batch->rows);
    }
    return write_rows(batch, batch->rows, batch->to, out, err);
}

static bool remove_chunks(const struct batch *batch, struct prb_error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        sqlite3_stmt *remove = prb_store_statement(batch->file, PRB_STORE_REMOVE_ONE, err);
        if (!remove)
            return false;
        sqlite3_bind_int64(remove, 1, batch->ids[i]);
        if (!prb_store_run(batch->file, remove, err))
            return false;
    }
    return true;
}

static bool is_worth_it(const struct batch *batch)
{
    if (batch->merging.rule)
        return batch->merging.count > 0; /* else all of it stays */
    return batch->count >= JOINED_MIN || (batch->count > 1 && batch->taken * 4 >= ROWS * 3);
}

static bool finish(struct batch *batch, struct prb_thinned *out, struct prb_error *err)
{
    if (!is_worth_it(batch))
        return true;
    if (!prb_store_begin(batch->file, err))
        return false;
    if (!write_rows(batch, batch->rows, batch->from, out, err) ||
        (batch->merging.rule && !write_groups(batch, out, err)) || !remove_chunks(batch, err) ||
        !prb_store_commit(batch->file, err)) {
        prb_store_rollback(batch->file);
        return false;
    }
    out->chunks += batch->count;
    out->rows += batch->taken;
    return true;
}

/* ---- a file ---- */

static size_t time_of(const struct prb_store_shape *shape, const char *name)
{
    size_t at = 0;
    while (at < shape->count && strcmp(shape->columns[at].name, name) != 0)
        at++;
    return at;
}

/* All chunks of a table, a process and a resolution that end before a time. */
static bool thin(const struct batch *what, const struct prb_store_rule *rule, double span,
                 struct prb_thinned *out, struct prb_error *err)
{
    double behind = -INFINITY;
    for (bool over = false; !over;) {
        PRB_AUTO(batch) struct batch batch = *what;
        batch.merging = (struct merging){.shape = what->shape, .rule = rule, .span = span};
        batch.first = INFINITY;
        batch.last = -INFINITY;
        batch.behind = behind;
        if (rule && !set_kinds(&batch.merging))
            return true;
        if (rule &&
            !(batch.merging.row = malloc(sizeof *batch.merging.row +
                                         what->shape->count * sizeof *batch.merging.row->values)))
            return prb_nomem(err);
        batch.time = rule ? time_of(what->shape, rule->time) : 0;
        batch.rows = prb_store_rows_new(what->shape->columns, what->shape->count, err);
        if (!batch.rows || !fill(&batch, err) || !finish(&batch, out, err))
            return false;
        over = batch.over || batch.behind <= behind;
        behind = batch.behind;
    }
    return true;
}

static const struct prb_store_rule *rule_of(const struct prb_store_rule *rules, size_t count,
                                            const struct prb_store_shape *shape)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rules[i].schema, shape->schema) == 0 && strcmp(rules[i].name, shape->name) == 0)
            return &rules[i];
    return NULL;
}

static bool thin_shape(struct batch *what, const struct prb_store_rule *rule,
                       const struct prb_store_ages *ages, double now, struct prb_thinned *out,
                       struct prb_error *err)
{
    static const double spans[] = {
        [PRB_STORE_RAW] = 60, [PRB_STORE_MINUTE] = 3600, [PRB_STORE_HOUR] = 0};
    const double limits[] = {ages->raw, ages->minutes};
    for (int from = PRB_STORE_RAW; rule && from < PRB_STORE_HOUR; from++) {
        what->from = (enum prb_store_resolution)from;
        what->to = (enum prb_store_resolution)(from + 1);
        what->before = prb_floor((now - limits[from]) / spans[from]) * spans[from];
        what->rows_max = PRB_STORE_ROWS_MAX;
        if (limits[from] > 0 && !thin(what, rule, spans[from], out, err))
            return false;
    }
    what->before = now - ages->join;
    what->rows_max = ROWS / 2;
    for (int from = PRB_STORE_RAW; from <= PRB_STORE_HOUR; from++) {
        what->from = what->to = (enum prb_store_resolution)from;
        if (ages->join > 0 && !thin(what, NULL, 0, out, err))
            return false;
    }
    return true;
}

bool prb_store_thin(struct prb_store_file *file, const struct prb_store_rule *rules, size_t count,
                    const struct prb_store_ages *ages, double now, struct prb_thinned *out,
                    struct prb_error *err)
{
    size_t shapes, processes;
    const struct prb_store_shape *shape = prb_store_shapes(file, &shapes);
    const struct prb_store_process *process = prb_store_processes(file, &processes);
    *out = (struct prb_thinned){0};
    for (size_t i = 0; i < shapes; i++)
        for (size_t j = 0; j < processes; j++) {
            struct batch what = {.file = file, .shape = &shape[i], .process = process[j].id};
            if (!thin_shape(&what, rule_of(rules, count, &shape[i]), ages, now, out, err))
                return false;
        }
    return true;
}
