/* What the sampler remembers of each thread: a slot, by the address of its thread state. */
#include "py/sampler_slots.h"

#include <stdlib.h>

static void slot_free(struct prb_sampler_slot *slot)
{
    if (!slot)
        return;
    prb_view_free(slot->view);
    prb_walk_deinit(&slot->walk[0]);
    prb_walk_deinit(&slot->walk[1]);
    free(slot);
}

void prb_sampler_slots_free(struct prb_sampler *sampler)
{
    for (size_t i = 0; sampler->slots && i < sampler->capacity; i++)
        slot_free(sampler->slots[i]);
    free(sampler->slots);
}

static struct prb_sampler_slot **slot_place(struct prb_sampler_slot **slots, size_t capacity,
                                            prb_addr tstate)
{
    size_t i = (size_t)((tstate >> 4) * 0x9e3779b97f4a7c15u >> 20) & (capacity - 1);
    while (slots[i] && slots[i]->tstate != tstate)
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

/* Rehash into capacity places, leaving out the slots of threads that ended. */
static bool rehash(struct prb_sampler *sampler, size_t capacity)
{
    struct prb_sampler_slot **slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    sampler->used = 0;
    for (size_t i = 0; i < sampler->capacity; i++) {
        struct prb_sampler_slot *slot = sampler->slots[i];
        if (slot && slot->seen + 1 >= sampler->number) {
            *slot_place(slots, capacity, slot->tstate) = slot;
            sampler->used++;
        } else {
            slot_free(slot);
        }
    }
    free(sampler->slots);
    sampler->slots = slots;
    sampler->capacity = capacity;
    return true;
}

const struct prb_sampler_slot *prb_sampler_slot_find(const struct prb_sampler *sampler,
                                                     prb_addr tstate)
{
    return *slot_place(sampler->slots, sampler->capacity, tstate);
}

struct prb_sampler_slot *prb_sampler_slot_for(struct prb_sampler *sampler, prb_addr tstate,
                                              struct prb_error *err)
{
    struct prb_sampler_slot **place = slot_place(sampler->slots, sampler->capacity, tstate);
    if (*place)
        return *place;
    if ((sampler->used + 1) * 2 > sampler->capacity) {
        if (!rehash(sampler, sampler->capacity) || ((sampler->used + 1) * 2 > sampler->capacity &&
                                                    !rehash(sampler, sampler->capacity * 2)))
            return PRB_NULL(prb_nomem(err));
        place = slot_place(sampler->slots, sampler->capacity, tstate);
    }
    struct prb_sampler_slot *slot = calloc(1, sizeof *slot);
    if (!slot || !(slot->view = prb_view_new(sampler->py->mem, sampler->unit, err))) {
        if (!slot)
            prb_nomem(err);
        free(slot);
        return NULL;
    }
    slot->tstate = tstate;
    slot->cold = true;
    sampler->used++;
    return *place = slot;
}
