/* See chunk.h. */
#include "store/chunk.h"

#include <stdlib.h>
#include <string.h>

struct waiting {       /* of one column */
    uint64_t *numbers; /* an integer or a double's bits; of a text its place in bytes */
    uint32_t *lengths; /* of texts, else NULL */
    uint8_t *nulls;
};

struct prb_store_rows {
    size_t column_count, count, cap;
    enum prb_ring_type type[PRB_RING_COLUMNS_MAX];
    struct waiting columns[PRB_RING_COLUMNS_MAX];
    struct prb_buf bytes;           /* of texts */
    struct prb_store_codec *codecs; /* an entry for each column; or NULL */
};

struct prb_store_rows *prb_store_rows_new(const struct prb_ring_column *columns, size_t count,
                                          struct prb_error *err)
{
    struct prb_store_rows *rows = calloc(1, sizeof *rows);
    if (!rows || count > PRB_RING_COLUMNS_MAX) {
        free(rows);
        return PRB_NULL(prb_nomem(err));
    }
    rows->column_count = count;
    for (size_t i = 0; i < count; i++)
        rows->type[i] = columns[i].type;
    return rows;
}

void prb_store_rows_free(struct prb_store_rows *rows)
{
    if (!rows)
        return;
    for (size_t i = 0; i < rows->column_count; i++) {
        free(rows->columns[i].numbers);
        free(rows->columns[i].lengths);
        free(rows->columns[i].nulls);
    }
    prb_buf_deinit(&rows->bytes);
    free(rows);
}

static bool resize(void *array, size_t count, size_t size)
{
    void *bigger = realloc(*(void **)array, count * size);
    if (bigger)
        *(void **)array = bigger;
    return bigger;
}

static bool grow(struct prb_store_rows *rows)
{
    size_t cap = rows->cap ? 2 * rows->cap : 256;
    if (rows->count < rows->cap)
        return true;
    for (size_t i = 0; i < rows->column_count; i++) {
        struct waiting *column = &rows->columns[i];
        if (!resize(&column->numbers, cap, sizeof *column->numbers) ||
            !resize(&column->nulls, cap, sizeof *column->nulls) ||
            (rows->type[i] == PRB_RING_TEXT &&
             !resize(&column->lengths, cap, sizeof *column->lengths)))
            return false;
    }
    rows->cap = cap;
    return true;
}

bool prb_store_rows_add(struct prb_store_rows *rows, const struct prb_ring_value *values,
                        struct prb_error *err)
{
    if (rows->count >= PRB_STORE_ROWS_MAX)
        return prb_fail(err, PRB_USAGE, "a chunk has at most %u rows", PRB_STORE_ROWS_MAX);
    if (!grow(rows))
        return prb_nomem(err);
    for (size_t i = 0; i < rows->column_count; i++) {
        struct waiting *column = &rows->columns[i];
        column->nulls[rows->count] = values[i].null;
        column->numbers[rows->count] = 0;
        if (rows->type[i] == PRB_RING_TEXT) {
            column->lengths[rows->count] = values[i].null ? 0 : (uint32_t)values[i].len;
            column->numbers[rows->count] = rows->bytes.len;
            if (!values[i].null && values[i].len)
                prb_buf_add(&rows->bytes, values[i].text, values[i].len);
        } else if (!values[i].null) {
            memcpy(&column->numbers[rows->count], &values[i].integer, sizeof(uint64_t));
        }
    }
    if (!prb_buf_ok(&rows->bytes))
        return prb_nomem(err);
    rows->count++;
    return true;
}

void prb_store_rows_remember(struct prb_store_rows *rows, struct prb_store_codec *codecs)
{
    rows->codecs = codecs;
}

size_t prb_store_rows_count(const struct prb_store_rows *rows) { return rows->count; }

void prb_store_rows_clear(struct prb_store_rows *rows)
{
    rows->count = 0;
    rows->bytes.len = 0;
}

static bool make_column(const struct prb_store_rows *rows, size_t i, struct prb_packer *packer,
                        struct prb_buf *out, struct prb_store_entry *entry, struct prb_error *err)
{
    const struct waiting *waiting = &rows->columns[i];
    struct prb_store_column column = {.type = rows->type[i],
                                      .count = rows->count,
                                      .nulls = waiting->nulls,
                                      .codec = rows->codecs ? &rows->codecs[i] : NULL};
    PRB_AUTO_FREE struct prb_store_text *texts = NULL;
    if (column.type != PRB_RING_TEXT) {
        column.integers = (const int64_t *)waiting->numbers;
        return prb_store_column_encode(packer, &column, out, entry, err);
    }
    if (!(texts = malloc((rows->count + 1) * sizeof *texts)))
        return prb_nomem(err);
    for (size_t row = 0; row < rows->count; row++)
        texts[row] = (struct prb_store_text){
            rows->bytes.data ? rows->bytes.data + waiting->numbers[row] : "",
            waiting->lengths[row]};
    column.texts = texts;
    return prb_store_column_encode(packer, &column, out, entry, err);
}

bool prb_store_chunk_make(const struct prb_store_rows *rows, struct prb_packer *packer,
                          struct prb_buf *out, struct prb_error *err)
{
    struct prb_store_entry entries[PRB_RING_COLUMNS_MAX];
    const struct prb_store_chunk_head head = {.magic = PRB_STORE_MAGIC,
                                              .version = PRB_STORE_VERSION,
                                              .columns = (uint16_t)rows->column_count,
                                              .rows = (uint32_t)rows->count};
    size_t bytes = rows->column_count * sizeof *entries;
    memset(entries, 0, bytes);
    prb_buf_add(out, &head, sizeof head);
    prb_buf_add(out, entries, bytes); /* filled in below */
    for (size_t i = 0; i < rows->column_count && prb_buf_ok(out); i++)
        if (!make_column(rows, i, packer, out, &entries[i], err))
            return false;
    if (!prb_buf_ok(out))
        return prb_nomem(err);
    memcpy(out->data + sizeof head, entries, bytes);
    return true;
}

bool prb_store_chunk_open(const char *bytes, size_t len, struct prb_store_chunk *out,
                          struct prb_error *err)
{
    struct prb_store_chunk_head head = {0};
    if (len < sizeof head)
        return prb_fail(err, PRB_CORRUPT, "a chunk of %zu bytes", len);
    memcpy(&head, bytes, sizeof head);
    if (head.magic != PRB_STORE_MAGIC || head.version != PRB_STORE_VERSION)
        return prb_fail(err, PRB_CORRUPT, "not a chunk of version %u", PRB_STORE_VERSION);
    if (!head.columns || head.columns > PRB_RING_COLUMNS_MAX || head.rows > PRB_STORE_ROWS_MAX ||
        len - sizeof head < head.columns * sizeof(struct prb_store_entry) || len > UINT32_MAX)
        return prb_fail(err, PRB_CORRUPT, "a chunk's head contradicts its length");
    *out = (struct prb_store_chunk){
        .bytes = bytes, .len = len, .rows = head.rows, .columns = head.columns};
    memcpy(out->entries, bytes + sizeof head, head.columns * sizeof *out->entries);
    return true;
}

bool prb_store_chunk_bounds(const struct prb_store_chunk *chunk, size_t column, double *least_out,
                            double *most_out)
{
    const struct prb_store_entry *entry = &chunk->entries[column];
    if (!(entry->flags & PRB_STORE_BOUNDED))
        return false;
    if (entry->type == PRB_RING_REAL || entry->type == PRB_RING_TIME) {
        memcpy(least_out, &entry->least, sizeof *least_out);
        memcpy(most_out, &entry->most, sizeof *most_out);
    } else {
        *least_out = (double)entry->least;
        *most_out = (double)entry->most;
    }
    return true;
}

bool prb_store_chunk_may_have(const struct prb_store_chunk *chunk, size_t column, double least,
                              double most)
{
    double from, to;
    return !prb_store_chunk_bounds(chunk, column, &from, &to) || !(to < least || from > most);
}

size_t prb_store_time_column(const struct prb_ring_column *columns, size_t count)
{
    static const char *const names[] = {"timestamp", "time", "ts", "begin", "end"};
    for (size_t name = 0; name < sizeof names / sizeof *names; name++)
        for (size_t i = 0; i < count; i++)
            if (strcmp(columns[i].name, names[name]) == 0 &&
                (columns[i].type == PRB_RING_TIME || columns[i].type == PRB_RING_REAL))
                return i;
    return SIZE_MAX;
}
