/* See drain.h. */
#include "store/drain.h"
#include "base/clock.h"
#include "base/real.h"
#include "store/file_parts.h"

#include <math.h>
#include <stdio.h>

#define READ_MAX ((uint64_t)1 << 20) /* bytes of rows in one transaction */

struct draining {
    struct prb_store_file *file;
    int64_t process;
    struct prb_store_shape shape;
    struct prb_store_rows *rows;
    double first, last; /* when the waiting rows were written */
    struct prb_drained *out;
    struct prb_error *err;
};

static void draining_deinit(struct draining *draining) { prb_store_rows_free(draining->rows); }
PRB_DEFINE_AUTO(draining, struct draining, draining_deinit)

/* A chunk's time: of its rows' writing, and what their time column says. */
static bool widen(const struct draining *draining, const struct prb_buf *bytes,
                  struct prb_store_new_chunk *chunk, struct prb_error *err)
{
    struct prb_store_chunk made;
    double least, most;
    size_t column = prb_store_time_column(draining->shape.columns, draining->shape.count);
    if (!prb_store_chunk_open(bytes->data, bytes->len, &made, err))
        return false;
    if (column < made.columns && prb_store_chunk_bounds(&made, column, &least, &most)) {
        chunk->first = prb_lesser(chunk->first, least);
        chunk->last = prb_greater(chunk->last, most);
    }
    return true;
}

static bool write_chunk(struct draining *draining)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct prb_store_new_chunk chunk = {
        .shape = draining->shape.id,
        .process = draining->process,
        .first = draining->first,
        .last = draining->last,
        .rows = prb_store_rows_count(draining->rows),
    };
    if (!chunk.rows)
        return true;
    if (!prb_store_chunk_make(draining->rows, draining->file->packer, &bytes, draining->err) ||
        !widen(draining, &bytes, &chunk, draining->err))
        return false;
    chunk.bytes = bytes.data;
    chunk.len = bytes.len;
    if (!prb_store_add_chunk(draining->file, &chunk, draining->err))
        return false;
    draining->out->chunks++;
    draining->out->rows += chunk.rows;
    draining->first = INFINITY;
    draining->last = -INFINITY;
    prb_store_rows_clear(draining->rows);
    return true;
}

static bool add_row(void *context, const struct prb_ring_value *values)
{
    struct draining *draining = context;
    double written = values[draining->shape.count].real;
    draining->first = prb_lesser(draining->first, written);
    draining->last = prb_greater(draining->last, written);
    return prb_store_rows_add(draining->rows, values, draining->err) &&
           (prb_store_rows_count(draining->rows) < PRB_STORE_CHUNK_ROWS || write_chunk(draining));
}

/* Rows that nobody can have any more; when they were written is known only roughly. */
static bool write_gap(struct draining *draining, uint64_t lost)
{
    char name[2 * PRB_RING_NAME_MAX + 2];
    struct prb_store_gap gap = {
        .table = name, .process = draining->process, .to = prb_clock_epoch_s()};
    snprintf(name, sizeof name, "%s.%s", draining->shape.schema, draining->shape.name);
    gap.rows = lost < INT64_MAX ? (int64_t)lost : INT64_MAX;
    gap.from = prb_store_last_time(draining->file, draining->shape.id, draining->process);
    return prb_store_add_gap(draining->file, &gap, draining->err);
}

static bool move_rows(struct draining *draining, struct prb_ring_reader *reader, uint64_t inode)
{
    PRB_AUTO(prb_ring_mark) struct prb_ring_mark from = {0}, to = {0};
    struct prb_ring_counts counts = {0};
    const char *name = draining->shape.name;
    if (!prb_store_mark(draining->file, draining->process, name, inode, &from, draining->err) ||
        !(draining->shape.id =
              prb_store_add_shape(draining->file, &draining->shape, draining->err)) ||
        !prb_ring_each_from(reader, from.count ? &from : NULL, READ_MAX, add_row, draining, &counts,
                            &to, draining->err) ||
        (counts.lost && !write_gap(draining, counts.lost)) || !write_chunk(draining))
        return false;
    draining->out->lost = counts.lost;
    draining->out->more = counts.more;
    return prb_store_set_mark(draining->file, draining->process, name, inode, &to, draining->err);
}

bool prb_store_drain(struct prb_store_file *file, int64_t process, const char *schema,
                     struct prb_ring_reader *reader, uint64_t inode, struct prb_store_codec *codecs,
                     struct prb_drained *out, struct prb_error *err)
{
    PRB_AUTO(draining)
    struct draining draining = {.file = file,
                                .process = process,
                                .shape = {.schema = schema, .name = prb_ring_name(reader)},
                                .first = INFINITY,
                                .last = -INFINITY,
                                .out = out,
                                .err = err};
    *out = (struct prb_drained){0};
    draining.shape.columns = prb_ring_columns(reader, &draining.shape.count);
    draining.rows = prb_store_rows_new(draining.shape.columns, draining.shape.count, err);
    if (!draining.rows)
        return false;
    prb_store_rows_remember(draining.rows, codecs);
    if (!prb_store_begin(file, err))
        return false;
    if (move_rows(&draining, reader, inode) && prb_store_commit(file, err))
        return true;
    prb_store_rollback(file);
    prb_store_refresh(file, NULL); /* a shape may be gone again */
    *out = (struct prb_drained){0};
    return false;
}
