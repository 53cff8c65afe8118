/* Which thread a frame or a value belongs to, so that code that reads it runs on that thread. */
#ifndef PRB_DAP_THREAD_MAP_H
#define PRB_DAP_THREAD_MAP_H

#include <jansson.h>
#include <sys/types.h>

#include "base/hash_map.h"

#define PRB_DAP_THREAD_MAP_MAX (1u << 20) /* entries in one stop */

enum prb_dap_handle { PRB_DAP_FRAME, PRB_DAP_VALUE };

struct prb_dap_thread_map {
    struct prb_hash_map threads; /* by a frame's or value's number */
};

/* Frames and values (variablesReference) have separate numbers. */
void prb_dap_thread_map_add(struct prb_dap_thread_map *map, enum prb_dap_handle kind, json_int_t id,
                            pid_t thread);
/* 0: not known. */
pid_t prb_dap_thread_map_find(const struct prb_dap_thread_map *map, enum prb_dap_handle kind,
                              json_int_t id);
void prb_dap_thread_map_clear(struct prb_dap_thread_map *map);

#endif
