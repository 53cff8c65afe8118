/* Threads of frames and values: see thread_map.h. */
#include "dap/session/thread_map.h"

static uint64_t key_of(enum prb_dap_handle kind, json_int_t id)
{
    return (uint64_t)id * 2 + (kind == PRB_DAP_VALUE);
}

void prb_dap_thread_map_add(struct prb_dap_thread_map *map, enum prb_dap_handle kind, json_int_t id,
                            pid_t thread)
{
    if (id <= 0 || !thread || map->threads.count >= PRB_DAP_THREAD_MAP_MAX)
        return;
    struct prb_hash_slot *slot = prb_hash_map_add(&map->threads, key_of(kind, id));
    if (slot)
        slot->number = (uint64_t)thread;
}

pid_t prb_dap_thread_map_find(const struct prb_dap_thread_map *map, enum prb_dap_handle kind,
                              json_int_t id)
{
    return id > 0 ? (pid_t)prb_hash_map_number(&map->threads, key_of(kind, id)) : 0;
}

void prb_dap_thread_map_clear(struct prb_dap_thread_map *map)
{
    prb_hash_map_deinit(&map->threads);
}
