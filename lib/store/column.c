/* See column.h. */
#include "store/column.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/real.h"

#define SHIFT_MAX 60 /* of k * 2^-m */
#define EXACT 0x1p53 /* integers below are doubles */
#define ORDERS 3

static const double divisors[PRB_STORE_SCALES] = {
    [PRB_STORE_THOUSANDS] = 1e3, [PRB_STORE_MILLIONS] = 1e6, [PRB_STORE_BILLIONS] = 1e9};

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- a double as an integer ---- */

#define MANTISSA_BITS 52 /* IEEE 754, binary64 */
#define EXPONENT_BIAS 1023
#define EXPONENT_MAX 0x7ff /* infinities and NaN */

/* Exact, and so is a product with it, while neither is subnormal. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(EXPONENT_BIAS + exponent) << MANTISSA_BITS;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double unscaled(int64_t k, enum prb_store_scale scale, int shift)
{
    return scale == PRB_STORE_BINARY ? (double)k * power_of_two(-shift)
                                     : (double)k / divisors[scale];
}

/* False: it is not exactly k in this scale. */
static bool scaled(double value, enum prb_store_scale scale, int shift, int64_t *out)
{
    double k = value * (scale == PRB_STORE_BINARY ? power_of_two(shift) : divisors[scale]);
    if (!(k > -EXACT && k < EXACT))
        return false;
    *out = (int64_t)prb_round(k);
    return bits_of(unscaled(*out, scale, shift)) == bits_of(value);
}

/* Binary digits behind the point, SHIFT_MAX + 1 for too many. */
static int fraction_digits(double value)
{
    uint64_t bits = bits_of(value), mantissa = bits & ((UINT64_C(1) << MANTISSA_BITS) - 1);
    int exponent = (int)(bits >> MANTISSA_BITS & EXPONENT_MAX);
    if (exponent == EXPONENT_MAX)
        return SHIFT_MAX + 1;
    if (exponent == 0)
        return mantissa ? SHIFT_MAX + 1 : 0; /* subnormal; zero */
    int zeros = mantissa ? __builtin_ctzll(mantissa) : MANTISSA_BITS;
    int digits = MANTISSA_BITS - zeros - (exponent - EXPONENT_BIAS);
    return digits < 0 ? 0 : digits > SHIFT_MAX ? SHIFT_MAX + 1 : digits;
}

static int digits_of_all(const double *values, size_t count)
{
    int most = 0;
    for (size_t i = 0; i < count && most <= SHIFT_MAX; i++) {
        int digits = fraction_digits(values[i]);
        most = digits > most ? digits : most;
    }
    return most;
}

static bool scale_all(const double *values, size_t count, enum prb_store_scale scale, int shift,
                      int64_t *out)
{
    for (size_t i = 0; i < count; i++)
        if (!scaled(values[i], scale, shift, &out[i]))
            return false;
    return true;
}

/* ---- numbers ---- */

static uint64_t zigzag(uint64_t value) { return value << 1 ^ (uint64_t)((int64_t)value >> 63); }
static uint64_t unzigzag(uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }

/* Differences into out, which has room for count; returns how many bytes the largest has. */
static inline __attribute__((always_inline)) unsigned
differences_of(const int64_t *values, size_t count, unsigned order, uint64_t *out)
{
    uint64_t all = 0, last = 0, last_difference = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = (uint64_t)values[i], difference = value - last;
        uint64_t number = order == 0   ? value
                          : order == 1 ? difference
                                       : difference - last_difference;
        last = value;
        last_difference = difference;
        out[i] = zigzag(number);
        all |= out[i];
    }
    return all ? (71u - (unsigned)__builtin_clzll(all)) / 8 : 0;
}

/* Made for each order, as what follows for each width. */
static unsigned differences(const int64_t *values, size_t count, unsigned order, uint64_t *out)
{
    return order == 0   ? differences_of(values, count, 0, out)
           : order == 1 ? differences_of(values, count, 1, out)
                        : differences_of(values, count, 2, out);
}

static inline __attribute__((always_inline)) void planes_of(const uint64_t *values, size_t count,
                                                            unsigned width, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
#pragma GCC unroll 8
        for (unsigned plane = 0; plane < width; plane++)
            out[plane * count + i] = (uint8_t)(values[i] >> 8 * plane);
    }
}
#define TO(width)                                                                                  \
    static void to_##width(const uint64_t *values, size_t count, uint8_t *out)                     \
    {                                                                                              \
        planes_of(values, count, width, out);                                                      \
    }
TO(0)
TO(1)
TO(2)
TO(3)
TO(4)
TO(5)
TO(6)
TO(7)
TO(8)
static void (*const to_width[])(const uint64_t *, size_t,
                                uint8_t *) = {to_0, to_1, to_2, to_3, to_4, to_5, to_6, to_7, to_8};

/*
 * The way back in one pass, made for each width: a column's time is in this loop, and a pass for
 * each plane and each step behind them takes twice as long.
 */
static inline __attribute__((always_inline)) void
from_planes(const uint8_t *in, size_t count, unsigned width, unsigned order, uint64_t *out)
{
    uint64_t last = 0, last_difference = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
#pragma GCC unroll 8
        for (unsigned plane = 0; plane < width; plane++)
            value |= (uint64_t)in[plane * count + i] << 8 * plane;
        value = unzigzag(value);
        if (order) {
            last_difference = order == 1 ? value : last_difference + value;
            value = last += last_difference;
        }
        out[i] = value;
    }
}
#define FROM(width)                                                                                \
    static void from_##width(const uint8_t *in, size_t count, unsigned order, uint64_t *out)       \
    {                                                                                              \
        from_planes(in, count, width, order, out);                                                 \
    }
FROM(0)
FROM(1)
FROM(2)
FROM(3)
FROM(4)
FROM(5)
FROM(6)
FROM(7)
FROM(8)
static void (*const from_width[])(const uint8_t *, size_t, unsigned, uint64_t *) = {
    from_0, from_1, from_2, from_3, from_4, from_5, from_6, from_7, from_8};

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
    for (unsigned order = 0; order < ORDERS && *size_out > count / 32; order++) {
        unsigned width = differences(from, count, order, scratch->different);
        to_width[width](scratch->different, count, scratch->planes);
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
    unsigned width = differences(from, count, entry->order, scratch->different);
    to_width[width](scratch->different, count, scratch->planes);
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
static bool to_scale(const double *from, size_t count, int scale, int shift, int64_t *out)
{
    if (scale != PRB_STORE_BITS)
        return !(scale == PRB_STORE_BINARY && shift > SHIFT_MAX) &&
               scale_all(from, count, (enum prb_store_scale)scale, shift, out);
    memcpy(out, from, count * sizeof *from);
    return true;
}

/* Of all scales in which every value is exact, the one that packs the first values best. */
static void choose_scale(struct prb_packer *packer, struct scratch *scratch, const double *from,
                         size_t count, struct prb_store_entry *entry)
{
    int shift = digits_of_all(from, count);
    size_t least = SIZE_MAX;
    for (int scale = PRB_STORE_BITS; scale < PRB_STORE_SCALES; scale++) {
        size_t size;
        if (!to_scale(from, count, scale, shift, scratch->numbers))
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
    int shift = codec->scale == PRB_STORE_BINARY ? digits_of_all(from, count) : 0;
    entry->scale = codec->scale;
    entry->order = codec->order;
    entry->shift = (uint8_t)shift;
    return to_scale(from, count, codec->scale, shift, scratch->best);
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
    entry->least = (int64_t)bits_of(least);
    entry->most = (int64_t)bits_of(most);
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
           entry->order < ORDERS && entry->scale < PRB_STORE_SCALES && entry->shift <= SHIFT_MAX &&
           entry->width <= 8 && (entry->scale == PRB_STORE_BITS || is_real(entry->type)) &&
           entry->null_count <= rows && entry->text_count <= rows &&
           entry->texts_bytes <= PRB_STORE_TEXTS_MAX &&
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
    from_width[entry->width](planes, rows, entry->order, numbers);
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

static void make_reals(uint64_t *numbers, size_t rows, const struct prb_store_entry *entry)
{
    for (size_t i = 0; entry->scale != PRB_STORE_BITS && i < rows; i++)
        numbers[i] = bits_of(
            unscaled((int64_t)numbers[i], (enum prb_store_scale)entry->scale, entry->shift));
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
        make_reals(numbers, rows, entry);
        for (size_t i = 0; values.column.nulls && i < rows; i++)
            numbers[i] = values.column.nulls[i] ? 0 : numbers[i];
        values.column.integers = (const int64_t *)(values.memory[1] = PRB_STEAL(numbers));
    }
    *out = values;
    values = (struct prb_store_values){0};
    return true;
}
