/*
 * Chains of frames made into stacks of the profile (member.h).
 *
 * A code object may end, and its address be another's, between the reading of the chain and that of
 * its name.  One that is known is proven the same after the chain was read; one that is new, or has
 * changed, is believed when the chain still holds it after it was read.
 */
#include <string.h>

#include "py/code.h"
#include "sample/member.h"

#define NAMING_TRIES 3
#define CODES_HELD_MAX 50000 /* code objects in the cache, replaced ones too: some 40 MB */

static uint64_t place_hash(const void *items, uint32_t item)
{
    const struct prb_place *place = &((const struct prb_member *)items)->places[item];
    return prb_hash_words((uintptr_t)place->code, (uint32_t)place->instruction);
}

static bool place_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_place *a = &((const struct prb_member *)items)->places[item], *b = key;
    return a->code == b->code && a->instruction == b->instruction;
}

static const struct prb_index_kind place_kind = {place_hash, place_same};

static uint32_t new_frame(struct prb_member *member, size_t runtime,
                          const struct prb_code_object *code, int32_t instruction)
{
    struct prb_profile_box *box = member->box;
    struct prb_profile_function function = {
        .kind = PRB_FRAME_PYTHON,
        .name = prb_profile_text(box, code->name),
        .qualname = prb_profile_text(box, code->qualname ? code->qualname : code->name),
        .filename = prb_profile_text(box, code->filename),
        .first_line = code->first_line,
    };
    function.short_filename =
        prb_profile_text(box, prb_shorten(&member->naming[runtime].folders, code->filename));
    struct prb_position at =
        prb_code_position(member->target->runtimes[runtime].py, code, instruction);
    return prb_profile_frame(box, prb_profile_function(box, &function), at.line);
}

uint32_t prb_name_frame(struct prb_member *member, size_t runtime,
                        const struct prb_code_object *code, int32_t instruction)
{
    const struct prb_place key = {.code = code, .instruction = instruction};
    uint64_t hash = prb_hash_words((uintptr_t)code, (uint32_t)instruction);
    uint32_t item = prb_index_find(&member->place_index, &place_kind, member, hash, &key);
    if (item != PRB_NO_ITEM)
        return member->places[item].frame;
    uint32_t frame = new_frame(member, runtime, code, instruction);
    if (!PRB_GROW(member->places, member->place_count, member->place_cap)) {
        member->box->failed = true;
        return frame;
    }
    member->places[member->place_count] = (struct prb_place){code, instruction, frame};
    if (prb_index_add(&member->place_index, &place_kind, member, hash,
                      (uint32_t)member->place_count))
        member->place_count++;
    return frame;
}

static void announce_thread(struct prb_py *py, struct prb_view *codes,
                            const struct prb_raw_thread *thread)
{
    for (size_t j = 0; !thread->at_rest && j < thread->frame_count; j++)
        if (thread->frames[j].code)
            prb_code_announce(py, codes, thread->frames[j].code);
}

/* Where the stacks that are to be named stand, so that one reading brings all of it in. */
static void announce(struct prb_member *member, size_t k)
{
    const struct prb_runtime *runtime = &member->target->runtimes[k];
    const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
    struct prb_view *codes = member->naming[k].codes;
    size_t count = raw->standing ? raw->active_count : raw->thread_count;
    for (size_t i = 0; i < count; i++)
        announce_thread(runtime->py, codes, &raw->threads[raw->standing ? raw->active[i] : i]);
}

void prb_name_begin(struct prb_member *member, size_t runtime)
{
    struct prb_py *py = member->target->runtimes[runtime].py;
    if (prb_codes_held(py) > CODES_HELD_MAX) {
        prb_codes_drop(py);
        prb_view_clear(member->naming[runtime].codes);
        prb_index_clear(&member->place_index);
        member->place_count = 0;
        for (size_t i = 0; i < member->seat_count; i++) {
            member->seats[i]->count = 0;
            member->seats[i]->told = false;
        }
    }
    prb_codes_again(py);
    announce(member, runtime);
    prb_view_refresh(&member->naming[runtime].codes, 1, NULL, NULL);
}

static bool chain_room(struct prb_member *member, struct prb_seat *seat, size_t count)
{
    while (seat->cap < count)
        if (!PRB_GROW(seat->chain, seat->cap, seat->cap)) {
            member->box->failed = true;
            return false;
        }
    return true;
}

/* The stack that a broken walk's good frames stand on. */
static uint32_t broken_root(struct prb_profile_box *box, const struct prb_error *why)
{
    struct prb_profile_function function = {
        .kind = PRB_FRAME_BROKEN,
        .name = prb_profile_text(box, "(the rest cannot be read)"),
        .filename = NULL,
    };
    (void)why;
    function.qualname = function.name;
    return prb_profile_node(box, 0,
                            prb_profile_frame(box, prb_profile_function(box, &function), 0));
}

/* *fresh_out: some of its code objects were not known before. */
static bool name_chain(struct prb_member *member, struct prb_seat *seat,
                       const struct prb_raw_thread *raw, bool *fresh_out)
{
    struct prb_py *py = member->target->runtimes[seat->runtime].py;
    struct prb_view *codes = member->naming[seat->runtime].codes;
    uint32_t node = raw->broken ? broken_root(member->box, &raw->error) : 0;
    size_t old = raw->broken ? 0 : seat->count, n = raw->frame_count;
    *fresh_out = false;
    seat->count = 0;
    if (!chain_room(member, seat, n))
        return false;
    for (size_t j = 0; j < n; j++) {
        const struct prb_raw_frame *frame = &raw->frames[n - 1 - j];
        struct prb_named *named = &seat->chain[j];
        const struct prb_code_object *code = NULL;
        bool fresh = false;
        if (frame->code && !(code = prb_code_watched(py, codes, frame->code, &fresh, NULL)))
            return false;
        *fresh_out |= fresh;
        if (j < old && named->code == code && named->instruction == frame->instruction) {
            node = named->node;
            continue;
        }
        old = 0;
        if (code)
            node = prb_profile_node(
                member->box, node, prb_name_frame(member, seat->runtime, code, frame->instruction));
        *named = (struct prb_named){code, frame->instruction, node};
    }
    seat->count = raw->broken ? 0 : n;
    seat->node = node;
    return true;
}

bool prb_name_thread(struct prb_member *member, struct prb_seat *seat, size_t k)
{
    struct prb_sampler *sampler = member->target->runtimes[seat->runtime].sampler;
    const struct prb_raw_thread *raw = &prb_sampler_last(sampler)->threads[k];
    if (raw->at_rest && seat->told)
        return true;
    seat->told = false;
    if (raw->unstable)
        return false;
    bool once = raw->broken; /* this chain was read once only: a broken one may merely have moved */
    for (int tries = 0; tries < NAMING_TRIES; tries++) {
        bool fresh;
        if (name_chain(member, seat, raw, &fresh)) {
            bool broken = raw->broken;
            seat->told = (!fresh && !once) ||
                         (prb_sampler_stood(sampler, k, false) && raw->broken == broken);
        } else {
            seat->count = 0;
            if (!prb_sampler_again(sampler, k, NULL))
                return false;
        }
        if (seat->told)
            return true;
        once = true;
    }
    seat->count = 0;
    return false;
}
