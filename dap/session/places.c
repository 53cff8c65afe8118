/* Threads of frames and values, a hash with open addressing: see places.h. */
#include "dap/session/places.h"

#include <stdint.h>
#include <stdlib.h>

static json_int_t key_of(enum prb_dap_place kind, json_int_t id)
{
    return id * 2 + (kind == PRB_DAP_VALUE);
}

static size_t slot_of(const struct prb_dap_places *places, json_int_t key)
{
    size_t at = (size_t)((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (places->cap - 1);
    while (places->slots[at].key && places->slots[at].key != key)
        at = (at + 1) & (places->cap - 1);
    return at;
}

/* Room for one more, at most half full; false: out of memory, or too many. */
static bool make_room(struct prb_dap_places *places)
{
    enum { FIRST = 256 };
    if (places->count * 2 < places->cap)
        return true;
    if (places->count >= PRB_DAP_PLACES_MAX)
        return false;
    struct prb_dap_places larger = {.cap = places->cap ? places->cap * 2 : FIRST,
                                    .count = places->count};
    larger.slots = calloc(larger.cap, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < places->cap; i++)
        if (places->slots[i].key)
            larger.slots[slot_of(&larger, places->slots[i].key)] = places->slots[i];
    free(places->slots);
    *places = larger;
    return true;
}

void prb_dap_places_add(struct prb_dap_places *places, enum prb_dap_place kind, json_int_t id,
                        pid_t thread)
{
    if (id <= 0 || !thread || !make_room(places))
        return;
    size_t at = slot_of(places, key_of(kind, id));
    places->count += !places->slots[at].key;
    places->slots[at].key = key_of(kind, id);
    places->slots[at].thread = thread;
}

pid_t prb_dap_places_find(const struct prb_dap_places *places, enum prb_dap_place kind,
                          json_int_t id)
{
    return id > 0 && places->cap ? places->slots[slot_of(places, key_of(kind, id))].thread : 0;
}

void prb_dap_places_clear(struct prb_dap_places *places)
{
    free(places->slots);
    *places = (struct prb_dap_places){0};
}
