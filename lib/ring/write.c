/*
 * Writing rows.  The common path reads the thread's lane and the clock, and stores into one or two
 * cache lines that no other thread writes to: no atomic read-modify-write, no system call.
 */
#include <string.h>

#include "base/clock.h"
#include "ring/columns.h"
#include "ring/writer.h"

#define ALIGN_ROW(n) (((n) + 7u) & ~7u)

static bool drop(struct prb_ring_table *table)
{
    atomic_fetch_add_explicit(&table->head->dropped, 1, memory_order_relaxed);
    return false;
}

/* How many bytes of each text are written, max at most; returns the bytes of all. */
static uint64_t text_lengths(const struct prb_ring_table *table,
                             const struct prb_ring_value *values, size_t max,
                             uint32_t lengths[PRB_RING_COLUMNS_MAX])
{
    uint64_t all = 0;
    for (uint64_t left = table->texts; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        lengths[i] = 0;
        if (!values[i].null)
            lengths[i] = (uint32_t)prb_ring_cut_length(values[i].text, values[i].len, max);
        all += lengths[i];
    }
    return all;
}

/* The row's bytes.  At the worst its texts share a chunk's room evenly. */
static uint32_t row_length(const struct prb_ring_table *table, const struct prb_ring_value *values,
                           uint32_t lengths[PRB_RING_COLUMNS_MAX])
{
    uint32_t room = table->chunk_bytes - (uint32_t)sizeof(struct prb_ring_chunk) - table->fixed - 8;
    if (!table->texts)
        return table->fixed;
    uint64_t all = text_lengths(table, values, PRB_RING_TEXT_MAX, lengths);
    if (all > room)
        all = text_lengths(table, values, room / (uint32_t)__builtin_popcountll(table->texts),
                           lengths);
    return ALIGN_ROW(table->fixed + (uint32_t)all);
}

static void put_texts(struct prb_ring_row *row, const struct prb_ring_table *table,
                      const struct prb_ring_value *values,
                      const uint32_t lengths[PRB_RING_COLUMNS_MAX])
{
    union prb_ring_cell *cells = (union prb_ring_cell *)(row + 1);
    uint32_t offset = table->fixed;
    for (uint64_t left = table->texts; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        if (values[i].null)
            continue;
        cells[i].text.offset = offset;
        cells[i].text.len = lengths[i];
        memcpy((char *)row + offset, values[i].text, lengths[i]);
        offset += lengths[i];
    }
}

static void put_row(struct prb_ring_row *row, const struct prb_ring_table *table,
                    const struct prb_ring_value *values)
{
    union prb_ring_cell *cells = (union prb_ring_cell *)(row + 1);
    uint64_t nulls = 0;
    for (uint32_t i = 0; i < table->column_count; i++) {
        nulls |= (uint64_t)values[i].null << i;
        cells[i].integer = values[i].null ? 0 : values[i].integer;
    }
    row->nulls = nulls;
}

/* The calling thread's lane, with room for a row of length bytes; NULL: there is none, and the row is
 * dropped. */
static inline struct prb_ring_lane *lane_for(struct prb_ring_table *table, uint32_t length)
{
    struct prb_ring_lane *lane = prb_ring_lane(table);
    if (lane && ((lane->chunk &&
                  lane->used + length <= table->chunk_bytes - sizeof(struct prb_ring_chunk)) ||
                 prb_ring_chunk_take(table, lane, length)))
        return lane;
    drop(table);
    return NULL;
}

static inline struct prb_ring_row *begin_row(const struct prb_ring_lane *lane, uint32_t length,
                                             int64_t time)
{
    struct prb_ring_row *row = (struct prb_ring_row *)((char *)(lane->chunk + 1) + lane->used);
    row->length = length;
    row->stamp = prb_ring_stamp(lane->generation, lane->used, length);
    row->time = time;
    return row;
}

/* From here on readers see the row. */
static inline void publish(struct prb_ring_lane *lane, uint32_t length, int64_t time)
{
    struct prb_ring_chunk *chunk = lane->chunk;
    lane->used += length;
    lane->rows++;
    uint64_t state = (uint64_t)lane->generation << 32 | lane->used;
    atomic_store_explicit(&chunk->latest, time, memory_order_relaxed);
    atomic_store_explicit(&chunk->state, state, memory_order_release);
    atomic_store_explicit(&chunk->check, prb_ring_check(state), memory_order_release);
}

static inline bool is_open(const struct prb_ring_table *table)
{
    return prb_ring_own(table) && !atomic_load_explicit(&table->closed, memory_order_relaxed);
}

bool prb_ring_write_at(struct prb_ring_table *table, const struct prb_ring_value *values,
                       int64_t time)
{
    uint32_t lengths[PRB_RING_COLUMNS_MAX];
    if (!is_open(table))
        return false;
    uint32_t length = row_length(table, values, lengths);
    struct prb_ring_lane *lane = lane_for(table, length);
    if (!lane)
        return false;
    struct prb_ring_row *row = begin_row(lane, length, time);
    put_row(row, table, values);
    if (table->texts)
        put_texts(row, table, values, lengths);
    publish(lane, length, time);
    return true;
}

bool prb_ring_write_cells(struct prb_ring_table *table, const int64_t *cells, int64_t time)
{
    uint32_t length = table->fixed;
    struct prb_ring_lane *lane = is_open(table) ? lane_for(table, length) : NULL;
    if (!lane)
        return false;
    struct prb_ring_row *row = begin_row(lane, length, time);
    row->nulls = 0;
    int64_t *out = (int64_t *)(row + 1);
    for (uint32_t i = 0; i < table->column_count; i++)
        out[i] = cells[i];
    publish(lane, length, time);
    return true;
}

bool prb_ring_write(struct prb_ring_table *table, const struct prb_ring_value *values)
{
    return prb_ring_write_at(table, values, prb_clock_epoch_ns());
}

/* ---- packed rows ---- */

static bool unpack(const struct prb_ring_table *table, const char *packed, size_t len,
                   struct prb_ring_value *out)
{
    size_t next = 8 + (size_t)table->column_count * 8;
    uint64_t nulls;
    if (len < next || len > PRB_RING_PACKED_MAX)
        return false;
    memcpy(&nulls, packed, sizeof nulls);
    if (nulls >> table->column_count)
        return false;
    for (uint32_t i = 0; i < table->column_count; i++) {
        struct prb_ring_value *value = &out[i];
        value->null = nulls >> i & 1;
        memcpy(&value->integer, packed + 8 + (size_t)i * 8, 8);
        if (table->type[i] == PRB_RING_BOOLEAN && (uint64_t)value->integer > 1)
            return false;
        if (table->type[i] != PRB_RING_TEXT)
            continue;
        uint64_t bytes = value->null ? 0 : (uint64_t)value->integer;
        if (bytes > len - next)
            return false;
        value->text = packed + next;
        value->len = bytes;
        next += bytes;
    }
    return next == len;
}

int prb_ring_write_packed(struct prb_ring_table *table, const void *packed, size_t len)
{
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX];
    if (!unpack(table, packed, len, values))
        return -1;
    return prb_ring_write(table, values) ? 0 : 1;
}
