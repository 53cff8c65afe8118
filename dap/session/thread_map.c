/* Threads of frames and values, a hash with open addressing: see thread_map.h. */
#include "dap/session/thread_map.h"

#include <stdint.h>
#include <stdlib.h>

static json_int_t key_of(enum prb_dap_handle kind, json_int_t id)
{
    return id * 2 + (kind == PRB_DAP_VALUE);
}

static size_t slot_of(const struct prb_dap_thread_map *map, json_int_t key)
{
    size_t at = (size_t)((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (map->cap - 1);
    while (map->slots[at].key && map->slots[at].key != key)
        at = (at + 1) & (map->cap - 1);
    return at;
}

/* Room for one more, at most half full; false: out of memory, or too many. */
static bool make_room(struct prb_dap_thread_map *map)
{
    enum { FIRST = 256 };
    if (map->count * 2 < map->cap)
        return true;
    if (map->count >= PRB_DAP_THREAD_MAP_MAX)
        return false;
    struct prb_dap_thread_map larger = {.cap = map->cap ? map->cap * 2 : FIRST,
                                        .count = map->count};
    larger.slots = calloc(larger.cap, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->cap; i++)
        if (map->slots[i].key)
            larger.slots[slot_of(&larger, map->slots[i].key)] = map->slots[i];
    free(map->slots);
    *map = larger;
    return true;
}

void prb_dap_thread_map_add(struct prb_dap_thread_map *map, enum prb_dap_handle kind, json_int_t id,
                            pid_t thread)
{
    if (id <= 0 || !thread || !make_room(map))
        return;
    size_t at = slot_of(map, key_of(kind, id));
    map->count += !map->slots[at].key;
    map->slots[at].key = key_of(kind, id);
    map->slots[at].thread = thread;
}

pid_t prb_dap_thread_map_find(const struct prb_dap_thread_map *map, enum prb_dap_handle kind,
                              json_int_t id)
{
    return id > 0 && map->cap ? map->slots[slot_of(map, key_of(kind, id))].thread : 0;
}

void prb_dap_thread_map_clear(struct prb_dap_thread_map *map)
{
    free(map->slots);
    *map = (struct prb_dap_thread_map){0};
}
