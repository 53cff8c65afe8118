/*
 * Lists, tuples, sets and deques: their items by address, in pieces whose objects are fetched
 * together. Sources: Include/cpython/listobject.h, tupleobject.h, setobject.h,
 * Modules/_collectionsmodule.c.
 */
#include <inttypes.h>
#include <string.h>

#include "py/object/reader.h"

enum { PIECE = 64 };

struct walk {
    struct prb_objects *objects;
    prb_item_fn *each;
    void *context;
    struct prb_error *err;
    bool ended; /* each said so */
};

static bool unreadable(struct walk *walk, prb_addr addr)
{
    return prb_fail_addr(walk->err, addr, "the items at 0x%" PRIx64 " cannot be read", addr);
}

static bool too_many(struct walk *walk)
{
    return prb_fail(walk->err, PRB_CORRUPT, "a container has too many items");
}

/* count pointers at addr. */
static bool array_each(struct walk *walk, prb_addr addr, uint64_t count)
{
    for (uint64_t at = 0; at < count && !walk->ended; at += PIECE) {
        size_t n = count - at < PIECE ? (size_t)(count - at) : PIECE;
        uint64_t items[PIECE];
        if (!prb_objects_spend(walk->objects, n))
            return too_many(walk);
        if (at > (UINT64_MAX - addr) / 8 ||
            !prb_objects_words(walk->objects, addr + 8 * at, items, n))
            return unreadable(walk, addr);
        prb_objects_prefetch(walk->objects, items, n);
        for (size_t i = 0; i < n && !walk->ended; i++)
            walk->ended = !walk->each(walk->context, 0, items[i]);
    }
    return true;
}

static bool list_each(struct walk *walk, prb_addr list)
{
    uint64_t size, items;
    if (!PRB_GET(walk->objects, list, list, size, &size) ||
        !PRB_GET(walk->objects, list, list, items, &items))
        return unreadable(walk, list);
    return array_each(walk, items, size);
}

static bool tuple_each(struct walk *walk, prb_addr tuple)
{
    uint64_t size;
    if (!PRB_GET(walk->objects, tuple, tuple, size, &size))
        return unreadable(walk, tuple);
    return array_each(walk, tuple + (uint64_t)PRB_OFF(walk->objects->layout, tuple, items), size);
}

/* A removed entry keeps a marker: an object whose entry has hash -1, which no object has; up to 3.4
 * only its type shows it. */
static bool is_removed(struct prb_objects *objects, prb_addr key, uint64_t hash)
{
    if (hash == UINT64_MAX)
        return true;
    struct prb_object_type *type = prb_type_of(objects, key, NULL);
    return type && !strcmp(type->name, "<dummy key> type");
}

static bool set_each(struct walk *walk, prb_addr set)
{
    uint64_t mask, table;
    if (!PRB_GET(walk->objects, set, set, mask, &mask) ||
        !PRB_GET(walk->objects, set, set, table, &table))
        return unreadable(walk, set);
    if (mask > 1ull << 40)
        return too_many(walk);
    for (uint64_t at = 0; at <= mask && !walk->ended; at += PIECE) {
        size_t n = mask + 1 - at < PIECE ? (size_t)(mask + 1 - at) : PIECE, used = 0;
        uint64_t entries[2 * PIECE], keys[PIECE], hashes[PIECE];
        if (!prb_objects_spend(walk->objects, n))
            return too_many(walk);
        if (!prb_objects_words(walk->objects, table + 16 * at, entries, 2 * n))
            return unreadable(walk, table);
        for (size_t i = 0; i < n; i++)
            if (entries[2 * i]) {
                keys[used] = entries[2 * i];
                hashes[used++] = entries[2 * i + 1];
            }
        prb_objects_prefetch(walk->objects, keys, used);
        for (size_t i = 0; i < used && !walk->ended; i++)
            if (!is_removed(walk->objects, keys[i], hashes[i]))
                walk->ended = !walk->each(walk->context, 0, keys[i]);
    }
    return true;
}

static bool deque_each(struct walk *walk, prb_addr deque)
{
    struct prb_objects *objects = walk->objects;
    uint64_t block, index, length;
    int32_t data = PRB_OFF(objects->layout, deque, block_data);
    int32_t right = PRB_OFF(objects->layout, deque, block_right);
    if (!PRB_GET(objects, deque, deque, leftblock, &block) ||
        !PRB_GET(objects, deque, deque, leftindex, &index) ||
        !PRB_GET(objects, deque, deque, length, &length) || data == PRB_ABSENT || right <= data)
        return unreadable(walk, deque);
    uint64_t per_block = (uint64_t)(right - data) / 8;
    while (length && !walk->ended) {
        if (index >= per_block)
            return unreadable(walk, deque);
        uint64_t n = per_block - index < length ? per_block - index : length;
        if (!array_each(walk, block + (uint64_t)data + 8 * index, n))
            return false;
        length -= n;
        index = 0;
        if (length && !PRB_GET(objects, block, deque, block_right, &block))
            return unreadable(walk, deque);
    }
    return true;
}

bool prb_sequence_walk(struct prb_objects *objects, prb_addr sequence, enum prb_object_kind kind,
                       prb_item_fn *each, void *context, struct prb_error *err)
{
    static bool (*const walks[])(struct walk *, prb_addr) = {
        [PRB_OBJ_TUPLE] = tuple_each,   [PRB_OBJ_LIST] = list_each,   [PRB_OBJ_SET] = set_each,
        [PRB_OBJ_FROZENSET] = set_each, [PRB_OBJ_DEQUE] = deque_each,
    };
    struct walk walk = {.objects = objects, .each = each, .context = context, .err = err};
    if (kind >= sizeof walks / sizeof *walks || !walks[kind])
        return prb_fail(err, PRB_CORRUPT, "no sequence at 0x%" PRIx64, sequence);
    return walks[kind](&walk, sequence);
}

bool prb_sequence_each(struct prb_objects *objects, prb_addr sequence, prb_item_fn *each,
                       void *context, struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, sequence, err);
    if (!type)
        return false;
    size_t steps = objects->steps;
    objects->steps = PRB_DICT_MAX;
    bool good = prb_sequence_walk(objects, sequence, type->kind, each, context, err);
    objects->steps = steps;
    return good;
}
