/* The text of /proc/PID/maps. */
#include <stdint.h>

#include "proc/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct prb_maps maps;
    if (!prb_maps_parse((const char *)data, len, &maps, NULL))
        return 0;
    for (size_t i = 0; i < maps.count; i++) {
        if (prb_maps_find(&maps, maps.items[i].end - 1) != &maps.items[i])
            __builtin_trap();
    }
    prb_maps_deinit(&maps);
    return 0;
}
