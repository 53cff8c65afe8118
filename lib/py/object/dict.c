/*
 * Dicts: combined and split tables of every layout (traits dict_keys and instance), walked without
 * hashing. A dict that changes meanwhile gives items of both moments; each read is bounded, none is
 * trusted. Sources: Objects/dictobject.c, Objects/dict-common.h (3.6–3.10),
 * Include/internal/pycore_dict.h (3.11+).
 */
#include <inttypes.h>
#include <string.h>

#include "py/object/reader.h"

/* Entries come in pieces: enough for one read, few enough that a walk that ends early has not read
 * much in vain. */
enum { PIECE = 64 };

/* A keys block, whatever its layout. */
struct keys {
    prb_addr entries;
    uint64_t slots;  /* of the hash table whose indices precede the entries; 0: there is none */
    uint64_t count;  /* entries in use, holes included */
    unsigned stride; /* bytes of an entry */
    unsigned key_at; /* offset of the key in it; the value follows */
    bool ordered;    /* values that keep the order in which they were set */
    uint8_t order[PIECE];
};

enum { ENTRY_HASHED = 24, ENTRY_UNICODE = 16 };
enum { EMPTY = -1 };

static unsigned index_width(uint64_t size)
{
    return size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8;
}

static bool keys_open(struct prb_objects *objects, prb_addr addr, struct keys *out)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t size, log2_bytes, kind = 0, index_bytes = 0;
    if (PRB_IS(layout, dict_keys, INDEX_BY_LOG2)) {
        if (!PRB_GET(objects, addr, dict_keys, log2_index_bytes, &log2_bytes) || log2_bytes > 40 ||
            !PRB_GET(objects, addr, dict_keys, kind, &kind))
            return false;
        index_bytes = 1ull << log2_bytes;
        out->slots = index_bytes >> (log2_bytes < 8    ? 0
                                     : log2_bytes < 17 ? 1
                                     : log2_bytes < 34 ? 2
                                                       : 3);
    } else {
        if (!PRB_GET(objects, addr, dict_keys, size, &size) || size > 1ull << 40)
            return false;
        if (PRB_IS(layout, dict_keys, INDEX_BY_SIZE)) {
            index_bytes = size * index_width(size);
            out->slots = size;
        }
    }
    out->entries = addr + (uint64_t)PRB_OFF(layout, dict_keys, indices) + index_bytes;
    out->stride = kind ? ENTRY_UNICODE : ENTRY_HASHED;
    out->key_at = kind ? 0 : 8;
    if (PRB_IS(layout, dict_keys, HASH_TABLE))
        out->count = size;
    else if (!PRB_GET(objects, addr, dict_keys, nentries, &out->count))
        return false;
    return out->count <= 1ull << 40;
}

/*
 * values 0: the value stands in the entry, else values[i] belongs to entry i.  Each piece's keys
 * and values are fetched together.
 */
/* A look-up ends early and reads keys only: to announce all items would fetch what nobody asked
 * for. */
static bool entries_each(struct prb_objects *objects, const struct keys *keys, prb_addr values,
                         prb_item_fn *each, void *context, struct prb_error *err)
{
    for (uint64_t at = 0; at < keys->count; at += PIECE) {
        size_t n = keys->count - at < PIECE ? (size_t)(keys->count - at) : PIECE;
        uint64_t words[PIECE * 3], items[2 * PIECE];
        size_t per_entry = keys->stride / 8, used = 0;
        prb_addr addr = keys->entries + at * keys->stride;
        if (!prb_objects_words(objects, addr, words, n * per_entry))
            return prb_fail_addr(err, addr, "the entries of a dict cannot be read");
        if (values && !prb_objects_words(objects, values + 8 * at, items, n))
            return prb_fail_addr(err, values, "the values of a dict cannot be read");
        if (at >= PRB_DICT_MAX || !prb_objects_spend(objects, n))
            return prb_fail(err, PRB_CORRUPT, "a dict has too many entries");
        uint64_t found[2 * PIECE], seen[2 * PIECE];
        size_t announced = 0;
        for (size_t k = 0; k < n; k++) {
            size_t i = keys->ordered ? keys->order[k] : k;
            const uint64_t *entry = words + i * per_entry + keys->key_at / 8;
            uint64_t value = values ? items[i] : entry[1];
            if (entry[0] && value) {
                found[used++] = seen[announced++] = entry[0];
                found[used++] = value;
                if (!objects->looking_up)
                    seen[announced++] = value;
            }
        }
        prb_objects_prefetch(objects, seen, announced);
        for (size_t i = 0; i < used; i += 2)
            if (!each(context, found[i], found[i + 1]))
                return true;
    }
    return true;
}

static bool walk_error(struct prb_error *err, prb_addr dict)
{
    return prb_fail_addr(err, dict, "there is no readable dict at 0x%" PRIx64, dict);
}

/* Take the order of the first entries from indices, the latest known last; the rest follows as it
 * lies. */
static void set_order(struct keys *keys, const uint8_t *indices, size_t count, int step)
{
    uint64_t seen = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++, indices += step)
        if (*indices < keys->count && !(seen >> *indices & 1)) {
            seen |= 1ull << *indices;
            keys->order[used++] = *indices;
        }
    for (uint8_t i = 0; i < keys->count; i++)
        if (!(seen >> i & 1))
            keys->order[used++] = i;
    keys->ordered = true;
}

/*
 * From 3.11 values remember in which order they were set: one byte each, behind the array, or
 * before it where the values have no head (then the count is at -2 and the first index at -3).
 */
static void read_order(struct prb_objects *objects, prb_addr values, struct keys *keys)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t size, capacity;
    const uint8_t *bytes;
    if (keys->count > PIECE || PRB_IS(layout, instance, DICT_OFFSET))
        return;
    if (PRB_IS(layout, instance, INLINE_VALUES)) {
        if (PRB_GET(objects, values, dict_values, size, &size) &&
            PRB_GET(objects, values, dict_values, capacity, &capacity) && size && size <= PIECE &&
            (bytes = prb_objects_get(
                 objects, values + (uint64_t)PRB_OFF(layout, dict_values, values) + 8 * capacity,
                 size)))
            set_order(keys, bytes, size, 1);
    } else if ((bytes = prb_objects_get(objects, values - 2, 1)) && (size = *bytes) &&
               size <= PIECE && (bytes = prb_objects_get(objects, values - 2 - size, size))) {
        set_order(keys, bytes + size - 1, size, -1);
    }
}

bool prb_shared_values_each(struct prb_objects *objects, prb_addr keys_addr, prb_addr values,
                            prb_item_fn *each, void *context, struct prb_error *err)
{
    struct keys keys = {0};
    uint64_t capacity;
    if (!keys_open(objects, keys_addr, &keys))
        return walk_error(err, keys_addr);
    if (PRB_GET(objects, values, dict_values, capacity, &capacity) && keys.count > capacity)
        keys.count = capacity;
    if (!objects->looking_up)
        read_order(objects, values, &keys);
    int32_t offset = PRB_OFF(objects->layout, dict_values, values);
    return entries_each(objects, &keys, values + (uint64_t)(offset == PRB_ABSENT ? 0 : offset),
                        each, context, err);
}

bool prb_dict_walk(struct prb_objects *objects, prb_addr dict, prb_item_fn *each, void *context,
                   struct prb_error *err)
{
    uint64_t keys_addr, values;
    struct keys keys = {0};
    if (!PRB_GET(objects, dict, dict, keys, &keys_addr) ||
        !PRB_GET(objects, dict, dict, values, &values))
        return walk_error(err, dict);
    if (values)
        return prb_shared_values_each(objects, keys_addr, values, each, context, err);
    if (!keys_open(objects, keys_addr, &keys))
        return walk_error(err, dict);
    return entries_each(objects, &keys, 0, each, context, err);
}

bool prb_dict_each(struct prb_objects *objects, prb_addr dict, prb_item_fn *each, void *context,
                   struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, dict, err);
    if (!type)
        return false;
    if (type->kind != PRB_OBJ_DICT)
        return prb_fail(err, PRB_CORRUPT, "not a dict but a %s at 0x%" PRIx64, type->name, dict);
    /* A walk of its own has its own steps; one inside another (a repr looking at a class) leaves
     * those alone. */
    size_t steps = objects->steps;
    objects->steps = PRB_DICT_MAX;
    bool good = prb_dict_walk(objects, dict, each, context, err);
    objects->steps = steps;
    return good;
}

/* ---- one item ---- */

/* One index of a keys block; negative: unused, or an item that was deleted. */
static bool index_at(struct prb_objects *objects, const struct keys *keys, uint64_t slot,
                     int64_t *out)
{
    unsigned width = index_width(keys->slots);
    const uint8_t *bytes =
        prb_objects_get(objects, keys->entries - (keys->slots - slot) * width, width);
    uint64_t index = 0;
    if (!bytes)
        return false;
    memcpy(&index, bytes, width);
    *out = (int64_t)(index << (64 - 8 * width)) >> (64 - 8 * width);
    return true;
}

/* An item as CPython finds it (lookdict() of Objects/dictobject.c), whatever its hash was made of: the key's
 * text decides.  False: it was not found so. */
static bool probe(struct prb_objects *objects, const struct keys *keys, uint64_t hash,
                  const char *name, prb_addr *out)
{
    enum { PROBES_MAX = 32, PERTURB_SHIFT = 5 };
    const uint64_t mask = keys->slots - 1;
    uint64_t slot = hash & mask, perturb = hash, entry[2];
    int64_t index;
    for (int i = 0; i < PROBES_MAX; i++) {
        if (!index_at(objects, keys, slot, &index) || index == EMPTY)
            return false;
        if (index >= 0 && (uint64_t)index < keys->count) {
            prb_addr at = keys->entries + (uint64_t)index * keys->stride + keys->key_at;
            if (!prb_objects_words(objects, at, entry, 2))
                return false;
            if (prb_str_equals(objects, entry[0], name)) {
                *out = entry[1];
                return entry[1] != 0;
            }
        }
        perturb >>= PERTURB_SHIFT;
        slot = (slot * 5 + perturb + 1) & mask;
    }
    return false;
}

/* By hash, where the target's key of hashes is known: a walk of sys.modules reads some thousand keys. */
static bool look_up(struct prb_objects *objects, prb_addr dict, const char *name, prb_addr *out)
{
    uint64_t keys_addr, values, hashes[PRB_STR_HASHES];
    struct keys keys = {0};
    struct prb_object_type *type = prb_type_of(objects, dict, NULL);
    if (!type || type->kind != PRB_OBJ_DICT || !PRB_GET(objects, dict, dict, keys, &keys_addr) ||
        !PRB_GET(objects, dict, dict, values, &values) || values ||
        !keys_open(objects, keys_addr, &keys) || keys.slots < 8 || (keys.slots & (keys.slots - 1)))
        return false;
    size_t count = prb_str_hashes(objects, name, hashes);
    for (size_t i = 0; i < count; i++)
        if (probe(objects, &keys, hashes[i], name, out))
            return true;
    return false;
}

struct wanted {
    struct prb_objects *objects;
    const char *name;
    prb_addr value;
};

static bool match(void *context, prb_addr key, prb_addr value)
{
    struct wanted *wanted = context;
    if (!prb_str_equals(wanted->objects, key, wanted->name))
        return true;
    wanted->value = value;
    return false;
}

bool prb_dict_get(struct prb_objects *objects, prb_addr dict, const char *name, prb_addr *out,
                  struct prb_error *err)
{
    struct wanted wanted = {.objects = objects, .name = name};
    if (look_up(objects, dict, name, out))
        return true;
    bool before = objects->looking_up;
    objects->looking_up = true;
    bool good = prb_dict_each(objects, dict, match, &wanted, err);
    objects->looking_up = before;
    if (good)
        *out = wanted.value;
    return good;
}
