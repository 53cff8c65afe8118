/* Hash maps (hash_map.h). */
#include "base/hash_map.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 64

void prb_hash_map_deinit(struct prb_hash_map *map)
{
    free(map->slots);
    *map = (struct prb_hash_map){0};
}

void prb_hash_map_clear(struct prb_hash_map *map)
{
    if (map->slots)
        memset(map->slots, 0, map->capacity * sizeof *map->slots);
    map->count = 0;
}

static bool make_room(struct prb_hash_map *map)
{
    if (map->count * 2 < map->capacity)
        return true;
    struct prb_hash_map larger = {.capacity = map->capacity ? map->capacity * 2 : CAPACITY_MIN,
                                  .count = map->count};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key)
            *prb_hash_map_slot(&larger, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = larger;
    return true;
}

struct prb_hash_slot *prb_hash_map_add(struct prb_hash_map *map, uint64_t key)
{
    if (!make_room(map))
        return NULL;
    struct prb_hash_slot *slot = prb_hash_map_slot(map, key);
    map->count += slot->key == 0;
    slot->key = key;
    return slot;
}
