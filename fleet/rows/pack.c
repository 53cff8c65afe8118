/* Rows to bytes: see pack.h. */
#include "fleet/rows/pack.h"

#include <math.h>
#include <string.h>

#include "base/index.h"
#include "fleet/rows/bytes.h"

/* ---- numbers ---- */

static void add_number(struct prb_buf *out, uint64_t value)
{
    unsigned char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (unsigned char)(value | 0x80);
    bytes[n++] = (unsigned char)value;
    prb_buf_add(out, bytes, n);
}

/* Small whether positive or negative. */
static uint64_t folded(int64_t value) { return (uint64_t)value << 1 ^ (uint64_t)(value >> 63); }

static void add_bytes(struct prb_buf *out, const char *bytes, size_t len)
{
    add_number(out, len);
    prb_buf_add(out, bytes, len);
}

void prb_pack_begin(struct prb_buf *out, const char *note, size_t tables)
{
    prb_buf_add(out, PRB_PACKED_MAGIC, sizeof PRB_PACKED_MAGIC - 1);
    add_bytes(out, note ? note : "", note ? strlen(note) : 0);
    add_number(out, tables);
}

/* ---- columns ---- */

static struct prb_value value_of(const struct prb_packing *packing, size_t column, size_t i)
{
    struct prb_value value = {.type = PRB_NULL_VALUE};
    if (packing->columns[column] >= 0)
        value = prb_rows_value(packing->rows, packing->chosen[i], (size_t)packing->columns[column]);
    if (value.type == PRB_REAL && isnan(value.real))
        value.type = PRB_NULL_VALUE; /* as SQLite has it */
    return value;
}

/* The kind of a column, whether it has NULLs. */
static unsigned char kind_of(const struct prb_packing *packing, size_t column, bool *nulls_out)
{
    unsigned char kind = PRB_COLUMN_NULL;
    *nulls_out = false;
    if (packing->columns[column] < 0)
        return kind;
    for (size_t i = 0; i < packing->count; i++) {
        enum prb_type type = value_of(packing, column, i).type;
        unsigned char one = type == PRB_INTEGER ? PRB_COLUMN_INTEGER
                            : type == PRB_REAL  ? PRB_COLUMN_REAL
                            : type == PRB_TEXT  ? PRB_COLUMN_TEXT
                                                : PRB_COLUMN_MIXED;
        if (type == PRB_NULL_VALUE)
            *nulls_out = true;
        else if (kind == PRB_COLUMN_NULL)
            kind = one;
        else if (kind != one)
            kind = PRB_COLUMN_MIXED;
    }
    return kind;
}

static void add_nulls(struct prb_buf *out, const struct prb_packing *packing, size_t column)
{
    unsigned char bits = 0;
    for (size_t i = 0; i < packing->count; i++) {
        if (value_of(packing, column, i).type == PRB_NULL_VALUE)
            bits |= (unsigned char)(1u << i % 8);
        if (i % 8 == 7 || i + 1 == packing->count) {
            prb_buf_addc(out, (char)bits);
            bits = 0;
        }
    }
}

static void add_integers(struct prb_buf *out, const struct prb_packing *packing, size_t column)
{
    int64_t before = 0;
    for (size_t i = 0; i < packing->count; i++) {
        struct prb_value value = value_of(packing, column, i);
        if (value.type == PRB_NULL_VALUE)
            continue;
        add_number(out, folded((int64_t)((uint64_t)value.integer - (uint64_t)before)));
        before = value.integer;
    }
}

static void add_reals(struct prb_buf *out, const struct prb_packing *packing, size_t column)
{
    for (size_t i = 0; i < packing->count; i++) {
        struct prb_value value = value_of(packing, column, i);
        if (value.type == PRB_REAL)
            prb_buf_add(out, &value.real, sizeof value.real);
    }
}

static void add_mixed(struct prb_buf *out, const struct prb_packing *packing, size_t column)
{
    for (size_t i = 0; i < packing->count; i++) {
        struct prb_value value = value_of(packing, column, i);
        if (value.type == PRB_NULL_VALUE)
            continue;
        prb_buf_addc(out, (char)value.type);
        if (value.type == PRB_INTEGER)
            add_number(out, folded(value.integer));
        else if (value.type == PRB_REAL)
            prb_buf_add(out, &value.real, sizeof value.real);
        else
            add_bytes(out, value.text, value.length);
    }
}

/* The different texts of a column. */
struct words {
    struct prb_value *items;
    size_t count, cap;
    struct prb_index index;
};

static void words_deinit(struct words *words)
{
    free(words->items);
    prb_index_deinit(&words->index);
}
PRB_DEFINE_AUTO(words, struct words, words_deinit)

static uint64_t hash_word(const void *items, uint32_t item)
{
    const struct prb_value *value = &((const struct prb_value *)items)[item];
    return prb_hash_bytes(value->text, value->length);
}

static bool is_word(const void *items, uint32_t item, const void *key)
{
    return prb_value_equal(&((const struct prb_value *)items)[item], key);
}

static const struct prb_index_kind word_kind = {hash_word, is_word};

static bool number_word(struct words *words, const struct prb_value *value, uint32_t *out)
{
    uint64_t hash = prb_hash_bytes(value->text, value->length);
    *out = prb_index_find(&words->index, &word_kind, words->items, hash, value);
    if (*out != PRB_NO_ITEM)
        return true;
    if (!PRB_GROW(words->items, words->count, words->cap))
        return false;
    *out = (uint32_t)words->count;
    words->items[words->count++] = *value;
    return prb_index_add(&words->index, &word_kind, words->items, hash, *out);
}

static bool add_texts(struct prb_buf *out, const struct prb_packing *packing, size_t column)
{
    PRB_AUTO(words) struct words words = {0};
    PRB_AUTO(prb_buf) struct prb_buf numbers = {0};
    for (size_t i = 0; i < packing->count; i++) {
        struct prb_value value = value_of(packing, column, i);
        uint32_t number;
        if (value.type != PRB_TEXT)
            continue;
        if (!number_word(&words, &value, &number))
            return false;
        add_number(&numbers, number);
    }
    add_number(out, words.count);
    for (size_t i = 0; i < words.count; i++)
        add_bytes(out, words.items[i].text, words.items[i].length);
    prb_buf_add(out, numbers.data, numbers.len);
    return prb_buf_ok(&numbers);
}

static bool add_column(struct prb_buf *out, const struct prb_packing *packing, size_t column)
{
    bool nulls;
    unsigned char kind = kind_of(packing, column, &nulls);
    bool bits = nulls && kind != PRB_COLUMN_NULL;
    prb_buf_addc(out, (char)(kind | (bits ? PRB_COLUMN_NULLS : 0)));
    if (bits)
        add_nulls(out, packing, column);
    switch (kind) {
    case PRB_COLUMN_INTEGER:
        add_integers(out, packing, column);
        return true;
    case PRB_COLUMN_REAL:
        add_reals(out, packing, column);
        return true;
    case PRB_COLUMN_TEXT:
        return add_texts(out, packing, column);
    case PRB_COLUMN_MIXED:
        add_mixed(out, packing, column);
        return true;
    default:
        return true;
    }
}

bool prb_pack_table(struct prb_buf *out, const struct prb_packing *packing, struct prb_error *err)
{
    uint32_t size = 0;
    size_t start = out->len;
    prb_buf_add(out, &size, sizeof size);
    if (!packing) {
        prb_buf_addc(out, PRB_SECTION_MISSING);
    } else {
        prb_buf_addc(out, packing->repeats ? PRB_SECTION_REPEATS : 0);
        add_number(out, packing->count);
        add_number(out, packing->column_count);
        for (size_t i = 0; packing->repeats && i < packing->count; i++)
            add_number(out, packing->repeats[i]);
        for (size_t i = 0; i < packing->column_count; i++)
            if (!add_column(out, packing, i))
                return prb_nomem(err);
    }
    if (!prb_buf_ok(out) || out->len - start - sizeof size > UINT32_MAX)
        return prb_nomem(err);
    size = (uint32_t)(out->len - start - sizeof size);
    memcpy(out->data + start, &size, sizeof size);
    return true;
}
