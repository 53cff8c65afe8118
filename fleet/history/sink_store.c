/*
 * A file of the store, which every command that takes a store reads: see sink.h.  How far the stream
 * was read is a mark that no process has.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "fleet/history/sink.h"
#include "store/file.h"
#include "store/host.h"
#include "table/recorded/names.h"

#define POSITION "history"
#define HOST "host"

struct store {
    struct prb_sink sink;
    struct prb_store_file *file;
    struct prb_packer *packer;
    bool named; /* the file knows its job */
};

static bool begin(struct prb_sink *sink, uint64_t stream, uint64_t *position, bool *again,
                  struct prb_error *err)
{
    struct store *store = (struct store *)sink;
    PRB_AUTO(prb_ring_mark) struct prb_ring_mark mark = {0};
    *again = false;
    if (!prb_store_begin(store->file, err))
        return false;
    if (!prb_store_mark(store->file, 0, POSITION, stream, &mark, err)) {
        prb_store_rollback(store->file);
        return false;
    }
    *position = mark.count ? mark.places[0].rows : 0;
    return true;
}

static bool commit(struct prb_sink *sink, uint64_t stream, uint64_t position, bool *again,
                   struct prb_error *err)
{
    struct store *store = (struct store *)sink;
    struct prb_ring_place place = {.state = 1, .rows = position};
    const struct prb_ring_mark mark = {&place, 1};
    *again = false;
    return prb_store_set_mark(store->file, 0, POSITION, stream, &mark, err) &&
           prb_store_commit(store->file, err);
}

/* With what the file's lists have of it. */
static void roll_back(struct prb_sink *sink)
{
    struct store *store = (struct store *)sink;
    prb_store_rollback(store->file);
    prb_store_refresh(store->file, NULL);
    store->named = false;
}

static uint64_t add_hash(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static int64_t process_of(struct store *store, const struct prb_taken *taken, struct prb_error *err)
{
    char text[400], identity[200];
    if (!store->named && !prb_store_set_job(store->file, taken->job, err))
        return 0;
    store->named = true;
    snprintf(text, sizeof text, "%.80s: rank %d of @%.128s", taken->host, taken->rank, taken->job);
    snprintf(identity, sizeof identity, "%.120s %" PRId64 " %" PRId64, taken->key, taken->pid,
             taken->started);
    /* The same pid and start may be there on two hosts. */
    const struct prb_store_process process = {
        .pid = taken->pid,
        .started = (int64_t)(add_hash(0xcbf29ce484222325u, identity) >> 1),
        .rank = taken->rank,
        .world_size = taken->world_size,
        .command = text,
    };
    return prb_store_add_process(store->file, &process, err);
}

/* What of a message becomes rows of the file. */
struct adding {
    const struct prb_taken *taken;
    struct prb_store_rows *rows;
    struct prb_ring_column columns[PRB_RING_COLUMNS_MAX];
    size_t count;
};

/* The host stands behind the columns of a program's own table, as in PostgreSQL; those of the
 * tables that this tool fills are the same in every file. */
static void choose_columns(const struct prb_taken *taken, struct adding *out)
{
    *out = (struct adding){.taken = taken, .count = taken->count};
    memcpy(out->columns, taken->columns, taken->count * sizeof *taken->columns);
    bool has = strcmp(taken->schema, PRB_HOST_SCHEMA) == 0 ||
               taken->count == PRB_RING_COLUMNS_MAX ||
               !prb_recorded_name_is_free(taken->name, NULL);
    for (size_t i = 0; i < taken->count && !has; i++)
        has = strcasecmp(taken->columns[i].name, HOST) == 0;
    if (!has)
        out->columns[out->count++] =
            (struct prb_ring_column){.name = HOST, .unit = "", .doc = "", .type = PRB_RING_TEXT};
}

static bool add_row(void *context, const struct prb_ring_value *values, struct prb_error *err)
{
    const struct adding *adding = context;
    const struct prb_taken *taken = adding->taken;
    struct prb_ring_value all[PRB_RING_COLUMNS_MAX];
    if (adding->count == taken->count)
        return prb_store_rows_add(adding->rows, values, err);
    memcpy(all, values, taken->count * sizeof *all);
    all[taken->count] = (struct prb_ring_value){.text = taken->host, .len = strlen(taken->host)};
    return prb_store_rows_add(adding->rows, all, err);
}

static bool write_rows(struct store *store, const struct prb_store_shape *shape, int64_t process,
                       const struct prb_store_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_store_chunk made;
    double now = prb_clock_epoch_s();
    struct prb_store_new_chunk chunk = {.process = process, .first = now, .last = now};
    size_t column = prb_store_time_column(shape->columns, shape->count);
    double least, most;
    if (!(chunk.rows = prb_store_rows_count(rows)))
        return true;
    if (!(chunk.shape = prb_store_add_shape(store->file, shape, err)) ||
        !prb_store_chunk_make(rows, store->packer, &bytes, err) ||
        !prb_store_chunk_open(bytes.data, bytes.len, &made, err))
        return false;
    if (column < made.columns && prb_store_chunk_bounds(&made, column, &least, &most)) {
        chunk.first = least;
        chunk.last = most;
    }
    chunk.bytes = bytes.data;
    chunk.len = bytes.len;
    return prb_store_add_chunk(store->file, &chunk, err);
}

static bool write_lost(struct store *store, const struct prb_taken *taken, int64_t process,
                       struct prb_error *err)
{
    char name[2 * PRB_RING_NAME_MAX + 2];
    if (!taken->lost)
        return true;
    snprintf(name, sizeof name, "%s.%s", taken->schema, taken->name);
    struct prb_store_gap gap = {
        .table = name, .process = process, .to = prb_clock_epoch_s(), .rows = (int64_t)taken->lost};
    return prb_store_add_gap(store->file, &gap, err);
}

static bool take(struct prb_sink *sink, const struct prb_taken *taken, uint64_t *rows_out,
                 struct prb_error *err)
{
    struct store *store = (struct store *)sink;
    struct adding adding;
    choose_columns(taken, &adding);
    const struct prb_store_shape shape = {.schema = taken->schema,
                                          .name = taken->name,
                                          .columns = adding.columns,
                                          .count = adding.count};
    int64_t process = process_of(store, taken, err);
    PRB_AUTO(prb_store_rows)
    struct prb_store_rows *rows =
        process ? prb_store_rows_new(adding.columns, adding.count, err) : NULL;
    adding.rows = rows;
    if (!rows || !prb_taken_each(taken, add_row, &adding, err) ||
        !write_rows(store, &shape, process, rows, err) || !write_lost(store, taken, process, err))
        return false;
    *rows_out = prb_store_rows_count(rows);
    return true;
}

static void free_store(struct prb_sink *sink)
{
    struct store *store = (struct store *)sink;
    prb_packer_free(store->packer);
    prb_store_close(store->file);
    free(store);
}

struct prb_sink *prb_sink_store(const char *path, struct prb_error *err)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return PRB_NULL(prb_nomem(err));
    store->sink = (struct prb_sink){
        .begin = begin, .take = take, .commit = commit, .rollback = roll_back, .free = free_store};
    snprintf(store->sink.name, sizeof store->sink.name, "%s", path);
    if ((store->packer = prb_packer_new(err)) && (store->file = prb_store_open(path, true, err)))
        return &store->sink;
    free_store(&store->sink);
    return NULL;
}
