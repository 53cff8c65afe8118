/*
 * Attributes of an instance, items of a dict by a str, of a list and of a tuple by their place, read
 * from memory as lib/py/object does it from outside.  A key is an interned str: most dicts have that
 * very one, others an equal one.
 */
#include <string.h>

#include "inject/probe/watch/watch.h"

#define ENTRIES_MAX 4096u /* of a dict that is looked through */
#define PIECE 64u         /* entries that are read together */
#define BASES_MAX 64
#define DICTOFFSET_MAX (1 << 20)

#define LAYOUT (&prb_watch_facts.layout)

static const char *pointer(uint64_t word) { return (const char *)(uintptr_t)word; }

static bool is_kind(const struct prb_watch_reader *reader, const char *type, const char *kind)
{
    uint64_t base;
    for (int i = 0; type && i < BASES_MAX; i++) {
        if (type == kind)
            return true;
        if (!PRB_WATCH_FIELD(reader, type, type, base, &base))
            return false;
        type = pointer(base);
    }
    return false;
}

static bool same_text(const struct prb_watch_reader *reader, const char *a, const char *b)
{
    char first[PRB_WATCHED_TEXT_MAX], second[PRB_WATCHED_TEXT_MAX];
    uint64_t length, other;
    if (prb_watch_type_of(reader, a) != prb_watch_facts.str_type ||
        !PRB_WATCH_FIELD(reader, a, str, length, &length) ||
        !PRB_WATCH_FIELD(reader, b, str, length, &other) || length != other)
        return false;
    size_t len = prb_watch_str(reader, a, first, sizeof first);
    return len && len == prb_watch_str(reader, b, second, sizeof second) &&
           memcmp(first, second, len) == 0;
}

/* ---- tables of keys ---- */

struct keys {
    const char *entries;
    uint64_t count;
    unsigned words; /* of an entry; its key is the first or, behind a hash, the second */
    unsigned key;
};

static bool open_keys(const struct prb_watch_reader *reader, const char *keys, struct keys *out)
{
    enum { SLOT_WORDS = 3, UNICODE_WORDS = 2, KIND_GENERAL = 0 };
    uint64_t size, log2, log2_bytes, kind;
    *out = (struct keys){.words = SLOT_WORDS, .key = 1};
    const char *indices = keys + PRB_OFF(LAYOUT, dict_keys, indices);
    if (PRB_IS(LAYOUT, dict_keys, INDEX_BY_LOG2)) {
        if (!PRB_WATCH_FIELD(reader, keys, dict_keys, log2_index_bytes, &log2_bytes) ||
            !PRB_WATCH_FIELD(reader, keys, dict_keys, log2_size, &log2) ||
            !PRB_WATCH_FIELD(reader, keys, dict_keys, kind, &kind) || log2_bytes > 40)
            return false;
        out->entries = indices + ((uint64_t)1 << log2_bytes);
        if (kind != KIND_GENERAL) {
            out->words = UNICODE_WORDS;
            out->key = 0;
        }
    } else {
        if (!PRB_WATCH_FIELD(reader, keys, dict_keys, size, &size) || size > (uint64_t)1 << 40)
            return false;
        unsigned width = size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8;
        out->entries = indices + size * width;
        if (PRB_IS(LAYOUT, dict_keys, HASH_TABLE)) {
            out->entries = indices;
            out->count = size;
        }
    }
    if (!PRB_IS(LAYOUT, dict_keys, HASH_TABLE) &&
        !PRB_WATCH_FIELD(reader, keys, dict_keys, nentries, &out->count))
        return false;
    if (out->count > ENTRIES_MAX)
        out->count = ENTRIES_MAX;
    return true;
}

/* The place of a key among the entries, and its value there; -1: it has none.  equal: another str
 * with the same text will do. */
static int64_t find_key(const struct prb_watch_reader *reader, const struct keys *keys,
                        const char *key, bool equal, const char **value_out)
{
    uint64_t piece[PIECE * 3];
    for (int pass = 0; pass <= equal; pass++) /* the very string first */
        for (uint64_t begin = 0; begin < keys->count; begin += PIECE) {
            uint64_t count = keys->count - begin < PIECE ? keys->count - begin : PIECE;
            if (!prb_watch_read(reader, keys->entries + begin * keys->words * 8, piece,
                                count * keys->words * 8))
                return -1;
            for (uint64_t i = 0; i < count; i++) {
                const char *here = pointer(piece[i * keys->words + keys->key]);
                if (!here || (pass ? !same_text(reader, here, key) : here != key))
                    continue;
                *value_out = pointer(piece[i * keys->words + keys->key + 1]);
                return (int64_t)(begin + i);
            }
        }
    return -1;
}

static const char *dict_get(const struct prb_watch_reader *reader, const char *dict,
                            const char *key, bool equal)
{
    uint64_t keys_at, values = 0, value = 0;
    struct keys keys;
    const char *found = NULL;
    if (!PRB_WATCH_FIELD(reader, dict, dict, keys, &keys_at) ||
        !open_keys(reader, pointer(keys_at), &keys))
        return NULL;
    int64_t at = find_key(reader, &keys, key, equal, &found);
    if (at < 0)
        return NULL;
    if (!PRB_WATCH_FIELD(reader, dict, dict, values, &values) || !values)
        return found;
    /* A split one: values beside the keys of its class. */
    const char *base = pointer(values);
    if (PRB_HAS(LAYOUT, dict_values, values))
        base += PRB_OFF(LAYOUT, dict_values, values);
    return prb_watch_read(reader, base + at * 8, &value, sizeof value) ? pointer(value) : NULL;
}

const char *prb_watch_dict_get(const struct prb_watch_reader *reader, const char *dict,
                               const char *key)
{
    const char *type = prb_watch_type_of(reader, dict);
    return is_kind(reader, type, prb_watch_facts.dict_type) ? dict_get(reader, dict, key, true)
                                                            : NULL;
}

/* ---- attributes ---- */

struct type {
    uint64_t flags, basicsize, dictoffset;
};

static bool open_type(const struct prb_watch_reader *reader, const char *type, struct type *out)
{
    return PRB_WATCH_FIELD(reader, type, type, flags, &out->flags) &&
           PRB_WATCH_FIELD(reader, type, type, basicsize, &out->basicsize) &&
           PRB_WATCH_FIELD(reader, type, type, dictoffset, &out->dictoffset);
}

static bool has_flag(const struct type *type, int16_t bit)
{
    return bit != PRB_NONE && type->flags >> bit & 1;
}

/* Where an instance has its attributes: in a dict, or as values beside its class's keys. */
static bool find_place(const struct prb_watch_reader *reader, const char *object,
                       const struct type *type, const char **dict, const char **values)
{
    uint64_t word = 0, more = 0;
    *dict = *values = NULL;
    if (PRB_IS(LAYOUT, instance, DICT_OFFSET) ||
        !has_flag(type, PRB_NUM(LAYOUT, flag_managed_dict_bit))) {
        int64_t offset = (int64_t)type->dictoffset;
        if (offset <= 0 || offset > DICTOFFSET_MAX ||
            !prb_watch_read(reader, object + offset, &word, sizeof word))
            return false;
        *dict = pointer(word);
        return word != 0;
    }
    if (!PRB_WATCH_FIELD(reader, object, managed_dict, dict, &word))
        return false;
    if (PRB_IS(LAYOUT, instance, DICT_OR_VALUES) && word & 1) {
        *values = pointer(word + 1);
        word = 0;
    } else if (!word && PRB_IS(LAYOUT, instance, VALUES_AND_DICT) &&
               PRB_WATCH_FIELD(reader, object, managed_dict, values, &more)) {
        *values = pointer(more);
    } else if (!word && PRB_IS(LAYOUT, instance, INLINE_VALUES) &&
               has_flag(type, PRB_NUM(LAYOUT, flag_inline_values_bit))) {
        const char *inside = object + type->basicsize;
        if (PRB_WATCH_FIELD(reader, inside, dict_values, valid, &more) && more)
            *values = inside;
    }
    *dict = pointer(word);
    return word || *values;
}

const char *prb_watch_attribute(const struct prb_watch_reader *reader, const char *object,
                                const char *key)
{
    const char *at = prb_watch_type_of(reader, object), *dict, *values, *ignored;
    uint64_t keys_at, value = 0;
    struct type type;
    struct keys keys;
    if (!at || !open_type(reader, at, &type) || !find_place(reader, object, &type, &dict, &values))
        return NULL;
    if (dict)
        return dict_get(reader, dict, key, false); /* names of attributes are interned */
    if (!PRB_WATCH_FIELD(reader, at, type, heap_cached_keys, &keys_at) ||
        !open_keys(reader, pointer(keys_at), &keys))
        return NULL;
    int64_t place = find_key(reader, &keys, key, false, &ignored);
    const char *base = values;
    if (PRB_HAS(LAYOUT, dict_values, values))
        base += PRB_OFF(LAYOUT, dict_values, values);
    if (place < 0 || !prb_watch_read(reader, base + place * 8, &value, sizeof value))
        return NULL;
    return pointer(value);
}

/* ---- lists and tuples ---- */

const char *prb_watch_item(const struct prb_watch_reader *reader, const char *sequence,
                           int64_t index)
{
    const char *type = prb_watch_type_of(reader, sequence);
    uint64_t size, items, value;
    if (is_kind(reader, type, prb_watch_facts.list_type)) {
        if (!PRB_WATCH_FIELD(reader, sequence, list, items, &items))
            return NULL;
    } else if (is_kind(reader, type, prb_watch_facts.tuple_type)) {
        items = (uintptr_t)sequence + (uint64_t)PRB_OFF(LAYOUT, tuple, items);
    } else {
        return NULL;
    }
    if (!PRB_WATCH_FIELD(reader, sequence, varobject, size, &size))
        return NULL;
    int64_t at = index < 0 ? index + (int64_t)size : index;
    if (at < 0 || at >= (int64_t)size ||
        !prb_watch_read(reader, pointer(items) + at * 8, &value, sizeof value))
        return NULL;
    return pointer(value);
}
