/*
 * Reading rings of other processes, alive or dead.  Nothing is mapped: a file that is cut short
 * meanwhile is a short read, not a signal.  Every number in the file is taken for hostile.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/file.h"
#include "ring/columns.h"
#include "ring/format.h"

#define STATE_TRIES 1000 /* readings of a state that is being stored */
#define STATE_STEADY 8   /* equal ones that are taken for what a stopped or dead writer left */
#define CHUNK_TRIES 4    /* readings of a chunk that is begun again meanwhile */

/* A chunk with rows behind the mark. */
struct unread {
    uint32_t chunk, generation;
};

struct prb_ring_reader {
    int fd;
    struct unread *unread; /* as prb_ring_waiting found them; NULL: not asked, or taken */
    size_t unread_count;
    size_t column_count;
    struct prb_ring_column columns[PRB_RING_COLUMNS_MAX]; /* texts of head */
    struct prb_ring_head *head;                           /* as it was at opening */
};

/* ---- opening ---- */

void prb_ring_close(struct prb_ring_reader *reader)
{
    if (!reader)
        return;
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader->unread);
    free(reader->head);
    free(reader);
}
PRB_DEFINE_AUTO_PTR(reader, struct prb_ring_reader, prb_ring_close)

static bool read_columns(struct prb_ring_reader *reader)
{
    struct prb_ring_head *head = reader->head;
    reader->column_count = head->columns;
    for (size_t i = 0; i < head->columns; i++) {
        struct prb_ring_head_column *column = &head->column[i];
        column->name[sizeof column->name - 1] = '\0';
        column->unit[sizeof column->unit - 1] = '\0';
        column->doc[sizeof column->doc - 1] = '\0';
        reader->columns[i] = (struct prb_ring_column){.name = column->name,
                                                      .unit = column->unit,
                                                      .doc = column->doc,
                                                      .type = (enum prb_ring_type)column->type};
    }
    return prb_ring_columns_check(reader->columns, reader->column_count, NULL);
}

static bool read_head(struct prb_ring_reader *reader, struct prb_error *err)
{
    struct prb_ring_head head;
    if (prb_read_at(reader->fd, &head, sizeof head, 0) != sizeof head ||
        !prb_ring_shape_is_good(&head))
        return prb_fail(err, PRB_CORRUPT, "not a ring of version %u", PRB_RING_VERSION);
    size_t bytes = sizeof head + head.columns * sizeof(struct prb_ring_head_column);
    if (!(reader->head = malloc(bytes)))
        return prb_nomem(err);
    if (prb_read_at(reader->fd, reader->head, bytes, 0) != bytes)
        return prb_fail(err, PRB_CORRUPT, "the ring ends within its head");
    memcpy(reader->head, &head, sizeof head); /* what was checked, should it have changed */
    reader->head->name[PRB_RING_NAME_MAX] = '\0';
    if (!prb_ring_is_name(reader->head->name) || !read_columns(reader))
        return prb_fail(err, PRB_CORRUPT, "the ring's names or types are not valid");
    return true;
}

struct prb_ring_reader *prb_ring_open_fd(int fd, const char *file, struct prb_error *err)
{
    struct stat st;
    PRB_AUTO(reader) struct prb_ring_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        close(fd);
        return PRB_NULL(prb_nomem(err));
    }
    reader->fd = fd;
    if (fstat(fd, &st) != 0)
        return PRB_NULL(prb_fail_sys(err, errno, "%s", file));
    if (!S_ISREG(st.st_mode))
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "%s is not a regular file", file));
    if (!read_head(reader, err))
        return PRB_NULL(prb_error_prefix(err, "%s", file));
    return PRB_STEAL(reader);
}

struct prb_ring_reader *prb_ring_open(int folder, const char *file, struct prb_error *err)
{
    int fd = openat(folder, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return PRB_NULL(prb_fail_sys(err, errno, "%s", file));
    return prb_ring_open_fd(fd, file, err);
}

const char *prb_ring_name(const struct prb_ring_reader *reader) { return reader->head->name; }

const struct prb_ring_column *prb_ring_columns(const struct prb_ring_reader *reader, size_t *count)
{
    *count = reader->column_count;
    return reader->columns;
}

/* ---- chunks ---- */

struct words {
    uint64_t state, check;
    int64_t latest;
    uint64_t earlier;
};

static uint64_t chunk_offset(const struct prb_ring_reader *reader, uint32_t chunk)
{
    return reader->head->head_bytes + (uint64_t)chunk * reader->head->chunk_bytes;
}

/* A state that was not read while it was stored.  False: there is no such chunk, or it cannot be
 * parsed. */
static bool read_state(const struct prb_ring_reader *reader, uint32_t chunk, struct words *out)
{
    struct words before = {0};
    int steady = 0;
    for (int i = 0; i < STATE_TRIES; i++) {
        if (prb_read_at(reader->fd, out, sizeof *out, chunk_offset(reader, chunk)) != sizeof *out)
            return false;
        if (out->check == prb_ring_check(out->state) || (!out->state && !out->check))
            return true;
        steady = out->state == before.state && out->check == before.check ? steady + 1 : 0;
        if (steady >= STATE_STEADY)
            return true;
        before = *out;
    }
    return false;
}

/* Bytes of a chunk's rows that were read before: none of those of another generation. */
static uint32_t skipped(const struct prb_ring_place *from, uint64_t state)
{
    bool same = from && prb_ring_generation(from->state) == prb_ring_generation(state);
    uint32_t used = same ? prb_ring_used(from->state) : 0;
    return used <= prb_ring_used(state) && used % 8 == 0 ? used : 0;
}

/* The chunk's rows behind the first skip bytes as they were at one moment, *len_out bytes (0: none);
 * freed by the caller. */
static bool copy_chunk(const struct prb_ring_reader *reader, uint32_t chunk,
                       const struct prb_ring_place *from, struct words *words, char **out,
                       uint32_t *skip_out, struct prb_ring_counts *counts, struct prb_error *err)
{
    uint32_t room = reader->head->chunk_bytes - (uint32_t)sizeof(struct prb_ring_chunk);
    *out = NULL;
    for (int i = 0; i < CHUNK_TRIES; i++) {
        struct words after;
        if (!read_state(reader, chunk, words) || !prb_ring_used(words->state))
            return true;
        uint32_t used = prb_ring_used(words->state), skip = skipped(from, words->state);
        if (used > room || used % 8) {
            counts->broken++;
            return true;
        }
        if (skip == used)
            return true;
        PRB_AUTO_FREE char *copy = malloc(used - skip);
        if (!copy)
            return prb_nomem(err);
        atomic_thread_fence(memory_order_seq_cst);
        if (prb_read_at(reader->fd, copy, used - skip,
                        chunk_offset(reader, chunk) + sizeof(struct prb_ring_chunk) + skip) !=
            used - skip)
            return true;
        atomic_thread_fence(memory_order_seq_cst);
        if (read_state(reader, chunk, &after) &&
            prb_ring_generation(after.state) == prb_ring_generation(words->state)) {
            /* It is stored before the first row's state, and a copy of both may have been made in another order. */
            words->earlier = after.earlier;
            *out = PRB_STEAL(copy);
            *skip_out = skip;
            return true;
        }
    }
    return true;
}

static uint32_t chunk_count(const struct prb_ring_reader *reader)
{
    struct stat st;
    if (fstat(reader->fd, &st) != 0 || st.st_size < (off_t)reader->head->head_bytes)
        return 0;
    uint64_t there = ((uint64_t)st.st_size - reader->head->head_bytes) / reader->head->chunk_bytes;
    return there < reader->head->chunks_max ? (uint32_t)there : reader->head->chunks_max;
}

/* ---- rows ---- */

struct found {
    int64_t time;
    const struct prb_ring_row *row;
};

struct reading {
    uint64_t bytes;
    struct prb_ring_reader *reader;
    char **copies;
    size_t copy_count, copy_cap;
    struct found *rows;
    size_t count, cap;
    struct prb_ring_counts counts;
};

static void reading_end(struct reading *reading)
{
    for (size_t i = 0; i < reading->copy_count; i++)
        free(reading->copies[i]);
    free(reading->copies);
    free(reading->rows);
}
PRB_DEFINE_AUTO(reading, struct reading, reading_end)

static bool note_rows(struct reading *reading, const char *copy, uint32_t skip, uint64_t state,
                      int64_t since, uint64_t *count_out, struct prb_error *err)
{
    uint32_t used = prb_ring_used(state), generation = prb_ring_generation(state);
    size_t least =
        sizeof(struct prb_ring_row) + reading->reader->column_count * sizeof(union prb_ring_cell);
    for (uint32_t offset = skip; offset < used; ++*count_out) {
        const struct prb_ring_row *row = (const struct prb_ring_row *)(copy + offset - skip);
        if (used - offset < least || row->length < least || row->length > used - offset ||
            row->length % 8 || row->stamp != prb_ring_stamp(generation, offset, row->length)) {
            reading->counts.broken++;
            return true;
        }
        offset += row->length;
        if (row->time < since)
            continue;
        if (!PRB_GROW(reading->rows, reading->count, reading->cap))
            return prb_nomem(err);
        reading->rows[reading->count++] = (struct found){row->time, row};
    }
    return true;
}

/* The live part of the head: counts and retention. */
static int64_t read_counts(struct reading *reading)
{
    struct prb_ring_head head;
    double retention;
    struct timespec now;
    if (prb_read_at(reading->reader->fd, &head, sizeof head, 0) != sizeof head)
        return INT64_MIN;
    reading->counts.dropped = head.dropped;
    reading->counts.full = head.flags & PRB_RING_FULL;
    memcpy(&retention, &head.retention, sizeof retention);
    clock_gettime(CLOCK_REALTIME, &now);
    if (!(retention > 0) || retention > (double)now.tv_sec)
        return INT64_MIN;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)(retention * 1e9);
}

static int by_generation(const void *a, const void *b)
{
    const struct unread *x = a, *y = b;
    return (x->generation > y->generation) - (x->generation < y->generation);
}

static const struct prb_ring_place *place_of(const struct prb_ring_mark *mark, uint32_t chunk)
{
    return mark && chunk < mark->count && mark->places[chunk].state ? &mark->places[chunk] : NULL;
}

/* How many bytes a chunk has behind the mark. */
static uint32_t unread_bytes(const struct prb_ring_reader *reader, uint32_t chunk,
                             const struct prb_ring_mark *from, struct words *words)
{
    if (!read_state(reader, chunk, words))
        return 0;
    return prb_ring_used(words->state) - skipped(place_of(from, chunk), words->state);
}

static void note_place(struct reading *reading, const struct prb_ring_mark *from, uint32_t chunk,
                       const struct words *words, uint64_t count, struct prb_ring_mark *to)
{
    const struct prb_ring_place *place = place_of(from, chunk);
    bool same = place && prb_ring_generation(place->state) == prb_ring_generation(words->state);
    uint64_t before = same ? place->rows : words->earlier, read = place ? place->rows : 0;
    if (from && !same && words->earlier > read)
        reading->counts.lost += words->earlier - read;
    if (to)
        to->places[chunk] = (struct prb_ring_place){words->state, before + count};
}

static bool take_chunk(struct reading *reading, const struct prb_ring_mark *from, uint32_t chunk,
                       int64_t since, struct prb_ring_mark *to, struct prb_error *err)
{
    struct words words;
    char *copy;
    uint32_t skip = 0;
    uint64_t count = 0;
    if (!PRB_GROW(reading->copies, reading->copy_count, reading->copy_cap))
        return prb_nomem(err);
    if (!copy_chunk(reading->reader, chunk, place_of(from, chunk), &words, &copy, &skip,
                    &reading->counts, err))
        return false;
    if (!copy)
        return true;
    reading->copies[reading->copy_count++] = copy;
    reading->bytes += prb_ring_used(words.state) - skip;
    if (reading->bytes > PRB_RING_READ_MAX)
        return prb_fail(err, PRB_NOMEM, "the ring holds more than %llu bytes of rows",
                        (unsigned long long)PRB_RING_READ_MAX);
    if (!note_rows(reading, copy, skip, words.state, since, &count, err))
        return false;
    note_place(reading, from, chunk, &words, count, to);
    return true;
}

/* Those there are, the chunk that was begun first first; how many bytes of rows they have. */
static bool find_unread(struct prb_ring_reader *reader, const struct prb_ring_mark *from,
                        uint64_t *bytes_out)
{
    uint32_t count = chunk_count(reader);
    struct unread *unread = realloc(reader->unread, (count + 1) * sizeof *unread);
    if (!unread)
        return false;
    reader->unread = unread;
    reader->unread_count = 0;
    *bytes_out = 0;
    for (uint32_t chunk = 0; chunk < count; chunk++) {
        struct words words;
        uint32_t bytes = unread_bytes(reader, chunk, from, &words);
        if (bytes)
            unread[reader->unread_count++] =
                (struct unread){chunk, prb_ring_generation(words.state)};
        *bytes_out += bytes;
    }
    qsort(unread, reader->unread_count, sizeof *unread, by_generation);
    return true;
}

static bool collect(struct reading *reading, const struct prb_ring_mark *from, uint64_t most,
                    struct prb_ring_mark *to, struct prb_error *err)
{
    struct prb_ring_reader *reader = reading->reader;
    int64_t since = read_counts(reading);
    uint64_t bytes;
    if (!reader->unread && !find_unread(reader, from, &bytes))
        return prb_nomem(err);
    PRB_AUTO_FREE struct unread *unread = PRB_STEAL(reader->unread);
    for (size_t i = 0; i < reader->unread_count; i++) {
        if (most && reading->bytes >= most) {
            reading->counts.more = true;
            break;
        }
        if (!take_chunk(reading, from, unread[i].chunk, since, to, err))
            return false;
    }
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Rows of one thread come in their order. */
static void sort(struct reading *reading)
{
    for (size_t i = 1; i < reading->count; i++)
        if (reading->rows[i].time < reading->rows[i - 1].time) {
            qsort(reading->rows, reading->count, sizeof *reading->rows, by_time);
            return;
        }
}

/* False: a text lies outside of its row. */
static bool decode(const struct prb_ring_reader *reader, const struct prb_ring_row *row,
                   struct prb_ring_value *out)
{
    const union prb_ring_cell *cells = (const union prb_ring_cell *)(row + 1);
    for (size_t i = 0; i < reader->column_count; i++) {
        out[i].null = row->nulls >> i & 1;
        if (reader->columns[i].type != PRB_RING_TEXT) {
            out[i].integer = cells[i].integer;
            if (reader->columns[i].type == PRB_RING_BOOLEAN)
                out[i].integer = cells[i].integer != 0;
            continue;
        }
        out[i].text = "";
        out[i].len = 0;
        if (out[i].null)
            continue;
        if (cells[i].text.offset > row->length ||
            cells[i].text.len > row->length - cells[i].text.offset)
            return false;
        out[i].text = (const char *)row + cells[i].text.offset;
        out[i].len = cells[i].text.len;
    }
    return true;
}

/* ---- marks ---- */

void prb_ring_mark_deinit(struct prb_ring_mark *mark)
{
    free(mark->places);
    *mark = (struct prb_ring_mark){0};
}

/* A mark with a place for each chunk of the file, those of the earlier one at first. */
static bool mark_begin(struct prb_ring_reader *reader, const struct prb_ring_mark *from,
                       struct prb_ring_mark *out, struct prb_error *err)
{
    size_t count = reader->head->chunks_max;
    struct prb_ring_place *places = calloc(count + 1, sizeof *places);
    if (!places)
        return prb_nomem(err);
    if (from && from->count)
        memcpy(places, from->places, (from->count < count ? from->count : count) * sizeof *places);
    *out = (struct prb_ring_mark){places, count};
    return true;
}

uint64_t prb_ring_waiting(struct prb_ring_reader *reader, const struct prb_ring_mark *from)
{
    uint64_t bytes;
    return find_unread(reader, from, &bytes) ? bytes : 0;
}

bool prb_ring_each_from(struct prb_ring_reader *reader, const struct prb_ring_mark *from,
                        uint64_t most,
                        bool (*row)(void *context, const struct prb_ring_value *values),
                        void *context, struct prb_ring_counts *counts_out,
                        struct prb_ring_mark *to_out, struct prb_error *err)
{
    PRB_AUTO(reading) struct reading reading = {.reader = reader};
    PRB_AUTO(prb_ring_mark) struct prb_ring_mark to = {0};
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX + 1];
    if ((to_out && !mark_begin(reader, from, &to, err)) ||
        !collect(&reading, from, most, to_out ? &to : NULL, err))
        return false;
    sort(&reading);
    for (size_t i = 0; i < reading.count; i++) {
        values[reader->column_count] =
            (struct prb_ring_value){.real = (double)reading.rows[i].time * 1e-9};
        if (!decode(reader, reading.rows[i].row, values))
            reading.counts.broken++;
        else if (!row(context, values))
            return false;
    }
    if (counts_out)
        *counts_out = reading.counts;
    if (to_out) {
        *to_out = to;
        to = (struct prb_ring_mark){0};
    }
    return true;
}

bool prb_ring_each(struct prb_ring_reader *reader,
                   bool (*row)(void *context, const struct prb_ring_value *values), void *context,
                   struct prb_ring_counts *counts_out, struct prb_error *err)
{
    return prb_ring_each_from(reader, NULL, 0, row, context, counts_out, NULL, err);
}

uint64_t prb_ring_room(struct prb_ring_reader *reader)
{
    return (uint64_t)reader->head->chunks_max * reader->head->chunk_bytes;
}

uint64_t prb_ring_inode(const struct prb_ring_reader *reader)
{
    struct stat st;
    return fstat(reader->fd, &st) == 0 ? st.st_ino : 0;
}

double prb_ring_row_bytes(const struct prb_ring_reader *reader)
{
    return (double)(sizeof(struct prb_ring_row) +
                    reader->column_count * sizeof(union prb_ring_cell));
}

double prb_ring_latest(struct prb_ring_reader *reader)
{
    int64_t latest = 0;
    uint32_t count = chunk_count(reader);
    for (uint32_t chunk = 0; chunk < count; chunk++) {
        struct words words;
        if (read_state(reader, chunk, &words) && prb_ring_used(words.state) &&
            words.latest > latest)
            latest = words.latest;
    }
    return (double)latest * 1e-9;
}
