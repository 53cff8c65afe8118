/* Store files: reading.  Everything in one is taken for hostile. */
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "store/file_parts.h"

bool prb_store_read_begin(struct prb_store_file *file, struct prb_error *err)
{
    return sqlite3_exec(file->sqlite, "BEGIN", NULL, NULL, NULL) == SQLITE_OK ||
           prb_store_failed(file, err);
}

void prb_store_read_end(struct prb_store_file *file)
{
    if (!sqlite3_get_autocommit(file->sqlite))
        sqlite3_exec(file->sqlite, "ROLLBACK", NULL, NULL, NULL);
}

bool prb_store_mark(struct prb_store_file *file, int64_t process, const char *name, uint64_t inode,
                    struct prb_ring_mark *out, struct prb_error *err)
{
    PRB_AUTO(prb_store_row)
    sqlite3_stmt *find = prb_store_statement(file, PRB_STORE_GET_MARK, err);
    *out = (struct prb_ring_mark){0};
    if (!find)
        return false;
    sqlite3_bind_int64(find, 1, process);
    sqlite3_bind_text(find, 2, name, -1, SQLITE_STATIC);
    int rc = sqlite3_step(find);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE || prb_store_failed(file, err);
    const void *places = sqlite3_column_blob(find, 1);
    size_t count = (size_t)sqlite3_column_bytes(find, 1) / sizeof *out->places;
    if ((uint64_t)sqlite3_column_int64(find, 0) != inode || !places || !count)
        return true;
    if (!(out->places = malloc(count * sizeof *out->places)))
        return prb_nomem(err);
    memcpy(out->places, places, count * sizeof *out->places);
    out->count = count;
    return true;
}

/* ---- rows ---- */

struct reading {
    const struct prb_store_query *query;
    struct prb_packer *packer;
    struct prb_store_values columns[PRB_RING_COLUMNS_MAX];
};

static void reading_deinit(struct reading *reading)
{
    for (size_t i = 0; i < PRB_RING_COLUMNS_MAX; i++)
        prb_store_values_deinit(&reading->columns[i]);
}
PRB_DEFINE_AUTO(reading, struct reading, reading_deinit)

static bool is_wanted(const struct prb_store_query *query, size_t column)
{
    return query->wanted >> column & 1;
}

static bool decode(struct reading *reading, const struct prb_store_chunk *chunk,
                   struct prb_error *err)
{
    const struct prb_store_shape *shape = reading->query->shape;
    if (chunk->columns != shape->count)
        return prb_fail(err, PRB_CORRUPT, "a chunk has other columns than its table");
    for (size_t i = 0; i < shape->count; i++) {
        if (!is_wanted(reading->query, i))
            continue;
        if (chunk->entries[i].type != shape->columns[i].type)
            return prb_fail(err, PRB_CORRUPT, "a chunk has other columns than its table");
        if (!prb_store_column_decode(reading->packer, chunk->bytes, chunk->len, &chunk->entries[i],
                                     chunk->rows, &reading->columns[i], err))
            return false;
    }
    return true;
}

/* A wanted column, and where its values go. */
struct taken {
    const struct prb_store_column *column;
    struct prb_ring_value *out;
};

static void take_value(const struct taken *taken, size_t row)
{
    const struct prb_store_column *column = taken->column;
    if (column->nulls)
        taken->out->null = column->nulls[row];
    if (column->type == PRB_RING_TEXT) {
        taken->out->text = column->texts[row].data;
        taken->out->len = column->texts[row].len;
    } else {
        taken->out->integer = column->integers[row];
    }
}

/* Of times, which are what is asked for; a bound on anything else holds for all rows. */
static bool is_within(const struct reading *reading, size_t row)
{
    for (size_t i = 0; i < reading->query->bound_count; i++) {
        const struct prb_store_bound *bound = &reading->query->bounds[i];
        const struct prb_store_column *column = &reading->columns[bound->column].column;
        bool real = column->type == PRB_RING_REAL || column->type == PRB_RING_TIME;
        if (real && column->reals && /* NULL: it was not read */
            !(column->reals[row] >= bound->least && column->reals[row] <= bound->most))
            return false;
    }
    return true;
}

static bool give_rows(const struct reading *reading, size_t rows, int64_t process,
                      enum prb_store_resolution resolution, prb_store_row_fn *row, void *context)
{
    const struct prb_store_query *query = reading->query;
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX];
    struct taken taken[PRB_RING_COLUMNS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < query->shape->count; i++) {
        values[i] = (struct prb_ring_value){.null = !is_wanted(query, i)};
        if (is_wanted(query, i))
            taken[count++] = (struct taken){&reading->columns[i].column, &values[i]};
    }
    for (size_t at = 0; at < rows; at++) {
        if (!is_within(reading, at))
            continue;
        for (size_t i = 0; i < count; i++)
            take_value(&taken[i], at);
        if (!row(context, values, process, resolution))
            return false;
    }
    return true;
}

static bool may_have(const struct prb_store_query *query, const struct prb_store_chunk *chunk)
{
    for (size_t i = 0; i < query->bound_count; i++)
        if (query->bounds[i].column < chunk->columns &&
            !prb_store_chunk_may_have(chunk, query->bounds[i].column, query->bounds[i].least,
                                      query->bounds[i].most))
            return false;
    return true;
}

/* The chunk's own time is that of its rows' time of writing or of this column. */
static void time_bounds(const struct prb_store_query *query, double *least, double *most)
{
    *least = -INFINITY;
    *most = INFINITY;
    size_t column = prb_store_time_column(query->shape->columns, query->shape->count);
    for (size_t i = 0; i < query->bound_count; i++)
        if (query->bounds[i].column == column) {
            *least = prb_greater(*least, query->bounds[i].least);
            *most = prb_lesser(*most, query->bounds[i].most);
        }
}

/* False: stop; a chunk that is damaged is counted. */
static bool take_chunk(struct reading *reading, sqlite3_stmt *found, prb_store_row_fn *row,
                       void *context, struct prb_store_counts *counts, struct prb_error *err)
{
    struct prb_store_chunk chunk;
    struct prb_error why = {0};
    const char *bytes = sqlite3_column_blob(found, 0);
    int len = sqlite3_column_bytes(found, 0);
    int64_t resolution = sqlite3_column_int64(found, 2);
    counts->all++;
    if (!bytes || !prb_store_chunk_open(bytes, (size_t)len, &chunk, &why) || resolution < 0 ||
        resolution > PRB_STORE_HOUR) {
        counts->broken++;
        return true;
    }
    if (!may_have(reading->query, &chunk))
        return true;
    bool good = decode(reading, &chunk, &why);
    if (!good && why.code == PRB_CORRUPT) {
        counts->broken++;
        reading_deinit(reading);
        return true;
    }
    if (!good) {
        if (err)
            *err = why;
        return false;
    }
    counts->chunks++;
    *(resolution ? &counts->summed : &counts->raw) += chunk.rows;
    good = give_rows(reading, chunk.rows, sqlite3_column_int64(found, 1),
                     (enum prb_store_resolution)resolution, row, context);
    reading_deinit(reading);
    return good;
}

bool prb_store_each(struct prb_store_file *file, const struct prb_store_query *query,
                    prb_store_row_fn *row, void *context, struct prb_store_counts *counts_out,
                    struct prb_error *err)
{
    PRB_AUTO(reading) struct reading reading = {.query = query, .packer = file->packer};
    PRB_AUTO(prb_store_row)
    sqlite3_stmt *found = prb_store_statement(file, PRB_STORE_FIND_CHUNKS, err);
    struct prb_store_counts counts = {0};
    double least, most;
    int rc;
    if (!found)
        return false;
    time_bounds(query, &least, &most);
    sqlite3_bind_int64(found, 1, query->shape->id);
    sqlite3_bind_double(found, 2, least);
    sqlite3_bind_double(found, 3, most);
    sqlite3_bind_int64(found, 4, query->process);
    while ((rc = sqlite3_step(found)) == SQLITE_ROW)
        if (!take_chunk(&reading, found, row, context, &counts, err))
            return false;
    if (counts_out)
        *counts_out = counts;
    return rc == SQLITE_DONE || prb_store_failed(file, err);
}

double prb_store_last_time(struct prb_store_file *file, int64_t shape, int64_t process)
{
    PRB_AUTO(prb_store_row)
    sqlite3_stmt *find = prb_store_statement(file, PRB_STORE_LAST_TIME, NULL);
    if (!find)
        return 0;
    sqlite3_bind_int64(find, 1, shape);
    sqlite3_bind_int64(find, 2, process);
    return sqlite3_step(find) == SQLITE_ROW ? sqlite3_column_double(find, 0) : 0;
}

bool prb_store_each_gap(struct prb_store_file *file,
                        bool (*gap)(void *context, const struct prb_store_gap *gap), void *context,
                        struct prb_error *err)
{
    PRB_AUTO(prb_store_row)
    sqlite3_stmt *found = prb_store_statement(file, PRB_STORE_LIST_GAPS, err);
    int rc = SQLITE_DONE;
    while (found && (rc = sqlite3_step(found)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(found, 0);
        const struct prb_store_gap one = {
            .table = name ? name : "",
            .process = sqlite3_column_int64(found, 1),
            .from = sqlite3_column_double(found, 2),
            .to = sqlite3_column_double(found, 3),
            .rows = sqlite3_column_int64(found, 4),
        };
        if (!gap(context, &one))
            return false;
    }
    return found && (rc == SQLITE_DONE || prb_store_failed(file, err));
}
