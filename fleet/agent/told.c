/* See told.h. */
#include "fleet/agent/told.h"

#include <stdlib.h>

#include "base/buf.h"

void prb_told_deinit(struct prb_told *told)
{
    free(told->items);
    *told = (struct prb_told){0};
}

void prb_told_look(struct prb_told *told) { told->look++; }

void prb_told_looked(struct prb_told *told)
{
    size_t kept = 0, found = 0;
    for (size_t i = 0; i < told->count; i++)
        found += told->items[i].look == told->look;
    if (told->count - found <= PRB_TOLD_KEPT)
        return;
    for (size_t i = 0; i < told->count; i++)
        if (told->items[i].look == told->look)
            told->items[kept++] = told->items[i];
    told->count = kept;
}

bool prb_told_has(struct prb_told *told, uint64_t hash)
{
    for (size_t i = told->count; i-- > 0;)
        if (told->items[i].hash == hash) {
            told->items[i].look = told->look;
            return true;
        }
    return false;
}

bool prb_told_add(struct prb_told *told, uint64_t hash)
{
    if (!PRB_GROW(told->items, told->count, told->cap))
        return false;
    told->items[told->count++] = (struct prb_told_dump){hash, told->look};
    return true;
}
