/*
 * A hash map from 64-bit numbers to what the caller keeps for each: open addressing, half full at
 * the most.  Keys are addresses, page numbers, ids: any number but 0.  An entry is removed only
 * with all others.  For items that lie in an array, and are compared by more than a number, there
 * is base/index.h.
 */
#ifndef PRB_BASE_HASH_MAP_H
#define PRB_BASE_HASH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct prb_hash_map {
    struct prb_hash_slot {
        uint64_t key; /* 0: free */
        union {
            void *pointer;
            uint64_t number;
        };
    } *slots;
    size_t capacity; /* a power of two */
    size_t count;
};

/* Begins as {0}. */
void prb_hash_map_deinit(struct prb_hash_map *map);
PRB_DEFINE_AUTO(prb_hash_map, struct prb_hash_map, prb_hash_map_deinit)
/* Remove all entries, and keep the memory. */
void prb_hash_map_clear(struct prb_hash_map *map);
/* The slot of a key, valid until the next key is added.  A new one holds NULL (and 0).  NULL: out
 * of memory. */
struct prb_hash_slot *prb_hash_map_add(struct prb_hash_map *map, uint64_t key);

/* The slot that has the key, or the free one where it belongs; the map is not empty. */
static inline struct prb_hash_slot *prb_hash_map_slot(const struct prb_hash_map *map, uint64_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->capacity - 1);
    while (map->slots[i].key && map->slots[i].key != key)
        i = (i + 1) & (map->capacity - 1);
    return &map->slots[i];
}

/* What is kept for a key: NULL or 0 when it is not there. */
static inline void *prb_hash_map_pointer(const struct prb_hash_map *map, uint64_t key)
{
    return map->capacity ? prb_hash_map_slot(map, key)->pointer : NULL;
}
static inline uint64_t prb_hash_map_number(const struct prb_hash_map *map, uint64_t key)
{
    return map->capacity ? prb_hash_map_slot(map, key)->number : 0;
}

#endif
