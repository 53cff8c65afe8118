/* Hash indices over arrays (index.h). */
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 256

void prb_index_deinit(struct prb_index *index)
{
    free(index->slots);
    *index = (struct prb_index){0};
}

void prb_index_clear(struct prb_index *index)
{
    if (index->slots)
        memset(index->slots, 0, index->capacity * sizeof *index->slots);
    index->count = 0;
}

static void put(uint32_t *slots, size_t capacity, uint64_t hash, uint32_t item)
{
    size_t i = (size_t)hash & (capacity - 1);
    while (slots[i])
        i = (i + 1) & (capacity - 1);
    slots[i] = item + 1;
}

static bool grow(struct prb_index *index, const struct prb_index_kind *kind, const void *items)
{
    size_t capacity = index->capacity ? index->capacity * 2 : LEAST;
    uint32_t *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < index->capacity; i++)
        if (index->slots[i])
            put(slots, capacity, kind->hash(items, index->slots[i] - 1), index->slots[i] - 1);
    free(index->slots);
    index->slots = slots;
    index->capacity = capacity;
    return true;
}

uint32_t prb_index_find(const struct prb_index *index, const struct prb_index_kind *kind,
                        const void *items, uint64_t hash, const void *key)
{
    if (!index->capacity)
        return PRB_NO_ITEM;
    for (size_t i = (size_t)hash & (index->capacity - 1); index->slots[i];
         i = (i + 1) & (index->capacity - 1))
        if (kind->same(items, index->slots[i] - 1, key))
            return index->slots[i] - 1;
    return PRB_NO_ITEM;
}

bool prb_index_add(struct prb_index *index, const struct prb_index_kind *kind, const void *items,
                   uint64_t hash, uint32_t item)
{
    if ((index->count + 1) * 2 > index->capacity && !grow(index, kind, items))
        return false;
    put(index->slots, index->capacity, hash, item);
    index->count++;
    return true;
}

uint64_t prb_hash_words(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u ^ b;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t prb_hash_bytes(const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return prb_hash_words(hash, len);
}
