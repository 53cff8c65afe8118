/* See column.h. */
#include "store/column.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/real.h"
#include "store/planes.h"

/* ---- numbers ---- */

struct scratch { /* for one column's numbers */
    int64_t *numbers, *best;
    uint64_t *different;
    uint8_t *planes;
};

static void scratch_deinit(struct scratch *scratch)
{
    free(scratch->numbers);
    free(scratch->best);
    free(scratch->different);
    free(scratch->planes);
}
PRB_DEFINE_AUTO(scratch, struct scratch, scratch_deinit)

static bool scratch_init(struct scratch *scratch, size_t count, struct prb_error *err)
{
    size_t bytes = (count + 1) * sizeof(uint64_t);
    scratch->numbers = malloc(bytes);
    scratch->best = malloc(bytes);
    scratch->different = malloc(bytes);
    scratch->planes = malloc(bytes);
    return (scratch->numbers && scratch->best && scratch->different && scratch->planes) ||
           prb_nomem(err);
}

/* The order that packs the first values best, and its size. */
static unsigned best_order(struct prb_packer *packer, struct scratch *scratch, const int64_t *from,
                           size_t count, size_t *size_out)
{
    unsigned best = 0;
    count = count < PRB_STORE_TRIAL ? count : PRB_STORE_TRIAL;
    *size_out = SIZE_MAX;
    /* What is next to nothing cannot get smaller: most columns hardly change within a chunk. */
    for (unsigned order = 0; order < PRB_STORE_ORDERS && *size_out > count / 32; order++) {
        unsigned width = prb_store_differences(from, count, order, scratch->different);
        prb_store_planes(scratch->different, count, width, scratch->planes);
        size_t size = prb_store_packed_size(packer, scratch->planes, width * count);
        if (size < *size_out) {
            *size_out = size;
            best = order;
        }
    }
    return best;
}

static bool put_numbers(struct prb_packer *packer, struct scratch *scratch, const int64_t *from,
                        size_t count, struct prb_buf *chunk, struct prb_store_entry *entry,
                        struct prb_error *err)
{
    bool packed;
    size_t before = chunk->len;
    unsigned width = prb_store_differences(from, count, entry->order, scratch->different);
    prb_store_planes(scratch->different, count, width, scratch->planes);
    if (!prb_store_pack(packer, scratch->planes, width * count, chunk, &packed))
        return prb_nomem(err);
    entry->width = (uint8_t)width;
    entry->flags |= packed ? PRB_STORE_NUMBERS_PACKED : 0;
    entry->numbers_stored = (uint32_t)(chunk->len - before);
    return true;
}

#define CODEC_CHUNKS 16 /* until all ways are tried again */
#define CODEC_SLACK 64  /* bytes that a chunk's column may be longer for any reason */

static bool is_remembered(const struct prb_store_codec *codec) { return codec && codec->left; }

/* What was chosen for a column, or chosen again, and gave this entry of so many rows. */
static void remember(struct prb_store_codec *codec, const struct prb_store_entry *entry,
                     size_t count)
{
    if (!codec || !count)
        return;
    double stored = (double)entry->numbers_stored;
    if (!codec->left)
        *codec = (struct prb_store_codec){.left = CODEC_CHUNKS,
                                          .scale = entry->scale,
                                          .order = entry->order,
                                          .bytes = (float)(stored / (double)count)};
    else if (stored > 1.25 * (double)codec->bytes * (double)count + CODEC_SLACK)
        codec->left = 0;
    else
        codec->left--;
}

static bool put_integers(struct prb_packer *packer, struct scratch *scratch, const int64_t *from,
                         size_t count, struct prb_store_codec *codec, struct prb_buf *chunk,
                         struct prb_store_entry *entry, struct prb_error *err)
{
    size_t size;
    entry->order = is_remembered(codec) ? codec->order
                                        : (uint8_t)best_order(packer, scratch, from, count, &size);
    if (!put_numbers(packer, scratch, from, count, chunk, entry, err))
        return false;
    remember(codec, entry, count);
    return true;
}

/* The integers of a scale.  False: not every value is exact in it. */
/* Of all scales in which every value is exact, the one that packs the first values best. */
static void choose_scale(struct prb_packer *packer, struct scratch *scratch, const double *from,
                         size_t count, struct prb_store_entry *entry)
{
    int shift = prb_store_fraction_digits(from, count);
    size_t least = SIZE_MAX;
    for (int scale = PRB_STORE_BITS; scale < PRB_STORE_SCALES; scale++) {
        size_t size;
        if (!prb_store_scale(from, count, (enum prb_store_scale)scale, shift, scratch->numbers))
            continue;
        unsigned order = best_order(packer, scratch, scratch->numbers, count, &size);
        if (size >= least)
            continue;
        least = size;
        entry->scale = (uint8_t)scale;
        entry->order = (uint8_t)order;
        entry->shift = scale == PRB_STORE_BINARY ? (uint8_t)shift : 0;
        int64_t *swap = scratch->best;
        scratch->best = scratch->numbers;
        scratch->numbers = swap;
    }
}

/* Into scratch->best, as the chunk before.  False: not every value is exact in its scale. */
static bool take_scale(struct scratch *scratch, const double *from, size_t count,
                       const struct prb_store_codec *codec, struct prb_store_entry *entry)
{
    int shift = codec->scale == PRB_STORE_BINARY ? prb_store_fraction_digits(from, count) : 0;
    entry->scale = codec->scale;
    entry->order = codec->order;
    entry->shift = (uint8_t)shift;
    return prb_store_scale(from, count, (enum prb_store_scale)codec->scale, shift, scratch->best);
}

static bool put_reals(struct prb_packer *packer, struct scratch *scratch, const double *from,
                      size_t count, struct prb_store_codec *codec, struct prb_buf *chunk,
                      struct prb_store_entry *entry, struct prb_error *err)
{
    if (!is_remembered(codec) || !take_scale(scratch, from, count, codec, entry)) {
        choose_scale(packer, scratch, from, count, entry);
        if (codec)
            codec->left = 0;
    }
    if (!put_numbers(packer, scratch, scratch->best, count, chunk, entry, err))
        return false;
    remember(codec, entry, count);
    return true;
}

/* ---- texts ---- */

struct dictionary {
    struct prb_index index;
    uint32_t *ends; /* of each text, in bytes */
    size_t count, cap;
    struct prb_buf bytes;
};

static void dictionary_deinit(struct dictionary *dictionary)
{
    prb_index_deinit(&dictionary->index);
    free(dictionary->ends);
    prb_buf_deinit(&dictionary->bytes);
}
PRB_DEFINE_AUTO(dictionary, struct dictionary, dictionary_deinit)

static struct prb_store_text text_at(const struct dictionary *dictionary, uint32_t item)
{
    uint32_t begin = item ? dictionary->ends[item - 1] : 0;
    return (struct prb_store_text){dictionary->bytes.data + begin, dictionary->ends[item] - begin};
}

static uint64_t item_hash(const void *items, uint32_t item)
{
    struct prb_store_text text = text_at(items, item);
    return prb_hash_bytes(text.data, text.len);
}

static bool item_is(const void *items, uint32_t item, const void *key)
{
    struct prb_store_text text = text_at(items, item);
    const struct prb_store_text *wanted = key;
    return text.len == wanted->len && memcmp(text.data, wanted->data, text.len) == 0;
}

/* The text's index, added when it is new; -1: it cannot be. */
static int64_t look_up(struct dictionary *dictionary, const struct prb_store_text *text)
{
    static const struct prb_index_kind kind = {item_hash, item_is};
    uint64_t hash = prb_hash_bytes(text->data, text->len);
    uint32_t item = prb_index_find(&dictionary->index, &kind, dictionary, hash, text);
    if (item != PRB_NO_ITEM)
        return item;
    if (dictionary->bytes.len + text->len > PRB_STORE_TEXTS_MAX ||
        !PRB_GROW(dictionary->ends, dictionary->count, dictionary->cap))
        return -1;
    prb_buf_add(&dictionary->bytes, text->data, text->len);
    item = (uint32_t)dictionary->count++;
    dictionary->ends[item] = (uint32_t)dictionary->bytes.len;
    if (!prb_buf_ok(&dictionary->bytes) ||
        !prb_index_add(&dictionary->index, &kind, dictionary, hash, item))
        return -1;
    return item;
}

static bool put_texts(struct prb_packer *packer, struct scratch *scratch,
                      const struct prb_store_column *column, struct prb_buf *chunk,
                      struct prb_store_entry *entry, struct prb_error *err)
{
    static const struct prb_store_text empty = {"", 0};
    PRB_AUTO(dictionary) struct dictionary dictionary = {0};
    PRB_AUTO(prb_buf) struct prb_buf raw = {0};
    bool packed;
    for (size_t i = 0; i < column->count; i++) {
        bool null = column->nulls && column->nulls[i];
        scratch->numbers[i] = look_up(&dictionary, null ? &empty : &column->texts[i]);
        if (scratch->numbers[i] < 0)
            return prb_fail(err, PRB_USAGE, "the texts of a column are more than %u bytes",
                            PRB_STORE_TEXTS_MAX);
    }
    if (!put_integers(packer, scratch, scratch->numbers, column->count, column->codec, chunk, entry,
                      err))
        return false;
    size_t before = chunk->len;
    prb_buf_add(&raw, dictionary.ends, dictionary.count * sizeof *dictionary.ends);
    if (dictionary.bytes.len)
        prb_buf_add(&raw, dictionary.bytes.data, dictionary.bytes.len);
    if (!prb_buf_ok(&raw) || !prb_store_pack(packer, raw.data, raw.len, chunk, &packed))
        return prb_nomem(err);
    entry->flags |= packed ? PRB_STORE_TEXTS_PACKED : 0;
    entry->text_count = (uint32_t)dictionary.count;
    entry->texts_bytes = (uint32_t)dictionary.bytes.len;
    entry->texts_stored = (uint32_t)(chunk->len - before);
    return true;
}

/* ---- NULL, and the bounds ---- */

static bool put_nulls(struct prb_packer *packer, const struct prb_store_column *column,
                      struct prb_buf *chunk, struct prb_store_entry *entry, struct prb_error *err)
{
    bool packed;
    size_t before = chunk->len, bytes = (column->count + 7) / 8;
    if (!column->nulls || !memchr(column->nulls, 1, column->count))
        return true;
    for (size_t i = 0; i < column->count; i++)
        entry->null_count += column->nulls[i];
    PRB_AUTO_FREE uint8_t *bits = calloc(1, bytes);
    if (!bits)
        return prb_nomem(err);
    for (size_t i = 0; i < column->count; i++)
        if (column->nulls[i])
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    if (!prb_store_pack(packer, bits, bytes, chunk, &packed))
        return prb_nomem(err);
    entry->flags |= packed ? PRB_STORE_NULLS_PACKED : 0;
    entry->nulls_stored = (uint32_t)(chunk->len - before);
    return true;
}

static bool is_real(enum prb_ring_type type)
{
    return type == PRB_RING_REAL || type == PRB_RING_TIME;
}

static void bound_reals(const struct prb_store_column *column, struct prb_store_entry *entry)
{
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < column->count; i++) {
        if (column->nulls && column->nulls[i])
            continue;
        if (isnan(column->reals[i]))
            return;
        least = prb_lesser(least, column->reals[i]);
        most = prb_greater(most, column->reals[i]);
    }
    if (least > most)
        return;
    entry->flags |= PRB_STORE_BOUNDED;
    entry->least = (int64_t)prb_store_bits(least);
    entry->most = (int64_t)prb_store_bits(most);
}

static inline __attribute__((always_inline)) void integers_between(const int64_t *integers,
                                                                   const uint8_t *nulls,
                                                                   size_t count, int64_t *least,
                                                                   int64_t *most)
{
    for (size_t i = 0; i < count; i++) {
        if (nulls && nulls[i])
            continue;
        *least = integers[i] < *least ? integers[i] : *least;
        *most = integers[i] > *most ? integers[i] : *most;
    }
}

static void bound_integers(const struct prb_store_column *column, struct prb_store_entry *entry)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    if (column->nulls)
        integers_between(column->integers, column->nulls, column->count, &least, &most);
    else
        integers_between(column->integers, NULL, column->count, &least, &most);
    if (least > most)
        return;
    entry->flags |= PRB_STORE_BOUNDED;
    entry->least = least;
    entry->most = most;
}

/* ---- a column ---- */

/* Numbers with those of NULLs replaced by the last one before. */
static const void *filled(const struct prb_store_column *column, struct scratch *scratch)
{
    const uint64_t *from = (const uint64_t *)column->integers;
    uint64_t last = 0, *to = (uint64_t *)scratch->numbers;
    if (!column->nulls)
        return from;
    for (size_t i = 0; i < column->count; i++)
        to[i] = last = column->nulls[i] ? last : from[i];
    return to;
}

bool prb_store_column_encode(struct prb_packer *packer, const struct prb_store_column *given,
                             struct prb_buf *chunk, struct prb_store_entry *entry,
                             struct prb_error *err)
{
    PRB_AUTO(scratch) struct scratch scratch = {0};
    struct prb_store_column column = *given;
    *entry = (struct prb_store_entry){.type = (uint8_t)column.type, .offset = (uint32_t)chunk->len};
    if (column.count > PRB_STORE_ROWS_MAX || !scratch_init(&scratch, column.count, err) ||
        !put_nulls(packer, &column, chunk, entry, err))
        return false;
    if (!entry->null_count)
        column.nulls = NULL; /* most columns: nothing is looked at for these */
    if (column.type == PRB_RING_TEXT)
        return put_texts(packer, &scratch, &column, chunk, entry, err);
    (is_real(column.type) ? bound_reals : bound_integers)(&column, entry);
    if (!is_real(column.type))
        return put_integers(packer, &scratch, filled(&column, &scratch), column.count, column.codec,
                            chunk, entry, err);
    if (!column.nulls)
        return put_reals(packer, &scratch, column.reals, column.count, column.codec, chunk, entry,
                         err);
    PRB_AUTO_FREE double *reals = malloc((column.count + 1) * sizeof *reals);
    if (!reals)
        return prb_nomem(err);
    memcpy(reals, filled(&column, &scratch), column.count * sizeof *reals);
    return put_reals(packer, &scratch, reals, column.count, column.codec, chunk, entry, err);
}

/* ---- back ---- */

void prb_store_values_deinit(struct prb_store_values *values)
{
    for (size_t i = 0; i < sizeof values->memory / sizeof *values->memory; i++)
        free(values->memory[i]);
    *values = (struct prb_store_values){0};
}

static bool wrong(struct prb_error *err)
{
    return prb_fail(err, PRB_CORRUPT, "a chunk's directory contradicts its bytes");
}

static bool entry_is_sound(const struct prb_store_entry *entry, size_t len, size_t rows)
{
    uint64_t end =
        (uint64_t)entry->offset + entry->nulls_stored + entry->numbers_stored + entry->texts_stored;
    return end <= len && entry->type >= PRB_RING_INTEGER && entry->type <= PRB_RING_TIME &&
           entry->order < PRB_STORE_ORDERS && entry->scale < PRB_STORE_SCALES &&
           entry->shift <= PRB_STORE_SHIFT_MAX && entry->width <= PRB_STORE_WIDTH_MAX &&
           (entry->scale == PRB_STORE_BITS || is_real(entry->type)) && entry->null_count <= rows &&
           entry->text_count <= rows && entry->texts_bytes <= PRB_STORE_TEXTS_MAX &&
           (entry->type == PRB_RING_TEXT || (!entry->text_count && !entry->texts_bytes));
}

static bool get_nulls(struct prb_packer *packer, const char *from,
                      const struct prb_store_entry *entry, size_t rows,
                      struct prb_store_values *out, struct prb_error *err)
{
    size_t bytes = (rows + 7) / 8;
    if (!entry->null_count)
        return true;
    PRB_AUTO_FREE uint8_t *bits = malloc(bytes + 1);
    uint8_t *nulls = out->memory[0] = malloc(rows + 1);
    if (!bits || !nulls)
        return prb_nomem(err);
    if (!prb_store_unpack(packer, entry->flags & PRB_STORE_NULLS_PACKED, from, entry->nulls_stored,
                          bits, bytes, err))
        return false;
    for (size_t i = 0; i < rows; i++)
        nulls[i] = bits[i / 8] >> i % 8 & 1;
    out->column.nulls = nulls;
    return true;
}

static uint64_t *get_numbers(struct prb_packer *packer, const char *from,
                             const struct prb_store_entry *entry, size_t rows,
                             struct prb_error *err)
{
    size_t bytes = rows * entry->width;
    PRB_AUTO_FREE uint8_t *planes = malloc(bytes + 1);
    PRB_AUTO_FREE uint64_t *numbers = malloc((rows + 1) * sizeof *numbers);
    if (!planes || !numbers)
        return PRB_NULL(prb_nomem(err));
    if (!prb_store_unpack(packer, entry->flags & PRB_STORE_NUMBERS_PACKED, from,
                          entry->numbers_stored, planes, bytes, err))
        return NULL;
    prb_store_from_planes(planes, rows, entry->width, entry->order, numbers);
    return PRB_STEAL(numbers);
}

static bool get_texts(struct prb_packer *packer, const char *from,
                      const struct prb_store_entry *entry, const uint64_t *indices, size_t rows,
                      struct prb_store_values *out, struct prb_error *err)
{
    size_t head = entry->text_count * sizeof(uint32_t), bytes = head + entry->texts_bytes;
    char *raw = out->memory[1] = malloc(bytes + 1);
    struct prb_store_text *texts = out->memory[2] = malloc((rows + 1) * sizeof *texts);
    if (!raw || !texts)
        return prb_nomem(err);
    if (!prb_store_unpack(packer, entry->flags & PRB_STORE_TEXTS_PACKED, from, entry->texts_stored,
                          raw, bytes, err))
        return false;
    const uint32_t *ends = (const uint32_t *)raw;
    for (uint32_t i = 0; i < entry->text_count; i++)
        if (ends[i] > entry->texts_bytes || (i && ends[i] < ends[i - 1]))
            return wrong(err);
    for (size_t i = 0; i < rows; i++) {
        if (indices[i] >= entry->text_count)
            return wrong(err);
        uint32_t begin = indices[i] ? ends[indices[i] - 1] : 0;
        texts[i] = (struct prb_store_text){raw + head + begin, ends[indices[i]] - begin};
    }
    out->column.texts = texts;
    return true;
}

bool prb_store_column_decode(struct prb_packer *packer, const char *chunk, size_t len,
                             const struct prb_store_entry *entry, size_t rows,
                             struct prb_store_values *out, struct prb_error *err)
{
    PRB_AUTO(prb_store_values) struct prb_store_values values = {0};
    if (rows > PRB_STORE_ROWS_MAX || !entry_is_sound(entry, len, rows))
        return wrong(err);
    const char *at = chunk + entry->offset;
    values.column =
        (struct prb_store_column){.type = (enum prb_ring_type)entry->type, .count = rows};
    if (!get_nulls(packer, at, entry, rows, &values, err))
        return false;
    at += entry->nulls_stored;
    PRB_AUTO_FREE uint64_t *numbers = get_numbers(packer, at, entry, rows, err);
    if (!numbers)
        return false;
    at += entry->numbers_stored;
    if (entry->type == PRB_RING_TEXT) {
        if (!get_texts(packer, at, entry, numbers, rows, &values, err))
            return false;
    } else {
        prb_store_unscale(numbers, rows, (enum prb_store_scale)entry->scale, entry->shift);
        for (size_t i = 0; values.column.nulls && i < rows; i++)
            numbers[i] = values.column.nulls[i] ? 0 : numbers[i];
        values.column.integers = (const int64_t *)(values.memory[1] = PRB_STEAL(numbers));
    }
    *out = values;
    values = (struct prb_store_values){0};
    return true;
}
