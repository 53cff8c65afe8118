/*
 * Chains of frames made into stacks of the profile (process.h).
 *
 * Between the reading of a chain and that of its names a code object may end, and another may have
 * its address.  A known one is proven to be the same after the chain was read.  A new or changed
 * one is believed if the chain still has it after its name was read.
 */
#include <string.h>

#include "py/code.h"
#include "py/walk.h"
#include "sample/process.h"

#define NAMING_TRIES 3
#define CODES_HELD_MAX 50000 /* code objects in the cache, replaced ones too: some 40 MB */

/* Whether nothing needs to be named again.  In the first readings that are still all is proven once
 * more, so that the view forgets code objects that are no longer needed. */
#define STANDS_AFTER 3
static bool stands(const struct prb_runtime_names *naming) { return naming->stood > STANDS_AFTER; }

static uint64_t instruction_hash(const void *items, uint32_t item)
{
    const struct prb_named_instruction *place =
        &((const struct prb_sampled_process *)items)->instructions[item];
    return prb_hash_words((uintptr_t)place->code, (uint32_t)place->instruction);
}

static bool instruction_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_named_instruction *a = &((const struct prb_sampled_process *)items)
                                                 ->instructions[item],
                                       *b = key;
    return a->code == b->code && a->instruction == b->instruction;
}

static const struct prb_index_kind instruction_kind = {instruction_hash, instruction_same};

static uint32_t new_frame(struct prb_sampled_process *process, size_t runtime,
                          const struct prb_code_object *code, int32_t instruction)
{
    struct prb_profile_box *box = process->box;
    struct prb_profile_function function = {
        .kind = PRB_FRAME_PYTHON,
        .name = prb_profile_text(box, code->name),
        .qualname = prb_profile_text(box, code->qualname ? code->qualname : code->name),
        .filename = prb_profile_text(box, code->filename),
        .first_line = code->first_line,
    };
    function.short_filename =
        prb_profile_text(box, prb_shorten(&process->names[runtime].folders, code->filename));
    struct prb_position at =
        prb_code_position(process->target->runtimes[runtime].py, code, instruction);
    return prb_profile_frame(box, prb_profile_function(box, &function), at.line);
}

uint32_t prb_name_frame(struct prb_sampled_process *process, size_t runtime,
                        const struct prb_code_object *code, int32_t instruction)
{
    const struct prb_named_instruction key = {.code = code, .instruction = instruction};
    uint64_t hash = prb_hash_words((uintptr_t)code, (uint32_t)instruction);
    uint32_t item =
        prb_index_find(&process->instruction_index, &instruction_kind, process, hash, &key);
    if (item != PRB_NO_ITEM)
        return process->instructions[item].frame;
    uint32_t frame = new_frame(process, runtime, code, instruction);
    if (!PRB_GROW(process->instructions, process->instruction_count, process->instruction_cap)) {
        process->box->failed = true;
        return frame;
    }
    process->instructions[process->instruction_count] =
        (struct prb_named_instruction){code, instruction, frame};
    if (prb_index_add(&process->instruction_index, &instruction_kind, process, hash,
                      (uint32_t)process->instruction_count))
        process->instruction_count++;
    return frame;
}

static void announce_thread(struct prb_py *py, struct prb_view *codes,
                            const struct prb_raw_thread *thread)
{
    for (size_t j = 0; !thread->unmoved && j < thread->frame_count; j++)
        if (thread->frames[j].code)
            prb_code_prefetch(py, codes, thread->frames[j].code);
}

/* Announce the code objects of the stacks to name, so that one reading fetches all of them. */
static void announce(struct prb_sampled_process *process, size_t k)
{
    const struct prb_runtime *runtime = &process->target->runtimes[k];
    const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
    struct prb_view *codes = process->names[k].codes;
    size_t count = raw->active_only ? raw->active_count : raw->thread_count;
    for (size_t i = 0; i < count; i++)
        announce_thread(runtime->py, codes, &raw->threads[raw->active_only ? raw->active[i] : i]);
}

/*
 * Whether no code object ended since the last reading that was named, so that all are what they
 * were.  Interpreters count (_code_object_generation, Objects/codeobject.c); it is read after the
 * stacks.
 */
static bool no_code_ended(struct prb_sampled_process *process, size_t k)
{
    const struct prb_runtime *runtime = &process->target->runtimes[k];
    const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
    struct prb_runtime_names *naming = &process->names[k];
    uint64_t all = 0, before = naming->ended;
    naming->ended = 0;
    if (!PRB_HAS(&runtime->py->layout, interp, code_object_generation) ||
        (!naming->stood && !prb_view_refresh(&naming->codes, 1, NULL, NULL)))
        return false;
    for (size_t i = 0; i < raw->interpreter_count; i++) {
        uint64_t count = 0;
        if (!prb_view_field(naming->codes, &runtime->py->layout, raw->interpreters[i].addr,
                            PRB_F_interp_code_object_generation, &count))
            return false;
        all = prb_hash_words(all ^ raw->interpreters[i].addr, count);
    }
    naming->ended = all;
    return all == before;
}

void prb_name_begin(struct prb_sampled_process *process, size_t runtime)
{
    struct prb_py *py = process->target->runtimes[runtime].py;
    struct prb_runtime_names *naming = &process->names[runtime];
    const struct prb_raw_stacks *raw = prb_sampler_last(process->target->runtimes[runtime].sampler);
    naming->stood = raw->still && raw->serial == naming->named + 1 ? naming->stood + 1 : 0;
    naming->named = raw->serial;
    if (stands(naming))
        return;
    bool none_ended = no_code_ended(process, runtime);
    if (prb_codes_count(py) > CODES_HELD_MAX) {
        prb_codes_drop(py);
        prb_view_clear(naming->codes);
        prb_index_clear(&process->instruction_index);
        process->instruction_count = 0;
        for (size_t i = 0; i < process->thread_count; i++) {
            process->threads[i]->count = 0;
            process->threads[i]->has_stack = false;
        }
    }
    prb_codes_next_sample(py, none_ended);
    if (naming->stood || none_ended)
        return;
    announce(process, runtime);
    prb_view_refresh(&naming->codes, 1, NULL, NULL);
}

static bool chain_room(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                       size_t count)
{
    while (thread->cap < count)
        if (!PRB_GROW(thread->chain, thread->cap, thread->cap)) {
            process->box->failed = true;
            return false;
        }
    return true;
}

/* The stack below the good frames of a broken walk. */
static uint32_t broken_root(struct prb_profile_box *box)
{
    struct prb_profile_function function = {
        .kind = PRB_FRAME_BROKEN,
        .name = prb_profile_text(box, "(the rest cannot be read)"),
        .filename = NULL,
    };
    function.qualname = function.name;
    return prb_profile_node(box, 0,
                            prb_profile_frame(box, prb_profile_function(box, &function), 0));
}

/* *fresh_out: some of its code objects were not known before. */
static bool name_chain(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                       const struct prb_raw_thread *raw, bool *fresh_out)
{
    struct prb_py *py = process->target->runtimes[thread->runtime].py;
    struct prb_view *codes = process->names[thread->runtime].codes;
    uint32_t node = raw->broken.why ? broken_root(process->box) : 0;
    size_t old = raw->broken.why ? 0 : thread->count, n = raw->frame_count;
    *fresh_out = false;
    thread->count = 0;
    if (!chain_room(process, thread, n))
        return false;
    for (size_t j = 0; j < n; j++) {
        const struct prb_raw_frame *frame = &raw->frames[n - 1 - j];
        struct prb_named_frame *named = &thread->chain[j];
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
                process->box, node,
                prb_name_frame(process, thread->runtime, code, frame->instruction));
        *named = (struct prb_named_frame){code, frame->instruction, node};
    }
    thread->count = raw->broken.why ? 0 : n;
    thread->node = node;
    return true;
}

bool prb_name_thread(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                     size_t k)
{
    struct prb_sampler *sampler = process->target->runtimes[thread->runtime].sampler;
    const struct prb_raw_thread *raw = &prb_sampler_last(sampler)->threads[k];
    if ((raw->unmoved || stands(&process->names[thread->runtime])) && thread->has_stack)
        return true;
    thread->has_stack = false;
    if (raw->unstable)
        return false;
    bool once = raw->broken.why !=
                NULL; /* the chain was read once only: a broken one may just have moved */
    for (int tries = 0; tries < NAMING_TRIES; tries++) {
        bool fresh, lost = raw->broken.why && !raw->frame_count; /* as while a frame is made */
        if (!lost && name_chain(process, thread, raw, &fresh)) {
            bool broken = raw->broken.why != NULL;
            thread->has_stack = (!fresh && !once) || (prb_sampler_unchanged(sampler, k, false) &&
                                                      (raw->broken.why != NULL) == broken);
        } else {
            thread->count = 0;
            if (!prb_sampler_reread(sampler, k, NULL))
                return false;
        }
        if (thread->has_stack)
            return true;
        once = true;
    }
    thread->count = 0;
    return false;
}
