/* Samples of stacks, and what part of a step each is at: see phases.h. */
#include "training/phases.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash_map.h"
#include "py/locals.h"
#include "py/object/reader.h"

#define UNIT 256u /* bytes of a code object that are fetched at a time */
#define TRIES 20  /* readings of one stack */
#define CLOCK_EVERY_S 0.1
#define MODULES_MAX 64 /* within each other; those further in count as the last of them */

/* A thread of the target, with what its samples were at. */
struct tally {
    prb_addr tstate;
    uint64_t thread_id, native_id;
    struct prb_hash_map by_key; /* 1 + index of the part */
    struct prb_phase_part *parts;
    size_t part_count, cap;
    size_t last; /* index of the part of the last sample, for one that has not moved since */
    bool has_last;
    uint64_t samples, dropped, in_phase;
};

struct sampling {
    const struct prb_runtime *runtime;
    struct prb_objects *objects; /* read anew for each sample */
    struct prb_view *codes;
    struct prb_hash_map functions; /* by code object: 1 + enum prb_phase */
    struct prb_hash_map types;     /* of modules, by address: char * in the arena */
    struct prb_arena arena;
    struct tally *tallies;
    size_t tally_count, tally_cap;
    struct prb_hash_map by_tstate; /* 1 + index */
};

static void sampling_deinit(struct sampling *sampling)
{
    for (size_t i = 0; i < sampling->tally_count; i++) {
        prb_hash_map_deinit(&sampling->tallies[i].by_key);
        free(sampling->tallies[i].parts);
    }
    free(sampling->tallies);
    prb_hash_map_deinit(&sampling->by_tstate);
    prb_hash_map_deinit(&sampling->functions);
    prb_hash_map_deinit(&sampling->types);
    prb_view_free(sampling->codes);
    prb_objects_free(sampling->objects);
    prb_arena_deinit(&sampling->arena);
}
PRB_DEFINE_AUTO(sampling, struct sampling, sampling_deinit)

void prb_phases_deinit(struct prb_phases *phases)
{
    free(phases->parts);
    prb_arena_deinit(&phases->arena);
    *phases = (struct prb_phases){0};
}

/* ---- one stack ---- */

struct module {
    size_t frames; /* of the stack, from the outermost to its own */
    prb_addr object;
};

struct place {
    struct prb_phase_state state;
    struct module modules[MODULES_MAX]; /* the innermost last */
    size_t count;
    bool fresh; /* a code object was not known before */
};

static enum prb_phase function_phase(struct sampling *sampling, const struct prb_code_object *code)
{
    struct prb_hash_slot *slot = prb_hash_map_add(&sampling->functions, (uintptr_t)code);
    if (!slot)
        return PRB_PHASE_OTHER;
    if (!slot->number)
        slot->number = 1 + (uint64_t)prb_phase_of_function(code->filename, code->name);
    return (enum prb_phase)(slot->number - 1);
}

/* The module that a frame of nn.Module's call runs; 0: it cannot be read. */
static prb_addr module_of(struct sampling *sampling, const struct prb_raw_frame *frame)
{
    prb_addr object = prb_locals_first(sampling->objects, frame);
    if (!object)
        return 0;
    if (prb_hash_map_pointer(&sampling->types, object))
        return object;
    struct prb_object_type *type = prb_type_of(sampling->objects, object, NULL);
    if (!type || prb_type_form(sampling->objects, type) != PRB_CLASS_TORCH_MODULE)
        return 0;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    prb_type_full_name(sampling->objects, type, &name);
    struct prb_hash_slot *slot = prb_hash_map_add(&sampling->types, object);
    if (slot && prb_buf_ok(&name))
        slot->pointer = prb_arena_strdup(&sampling->arena, name.data ? name.data : "");
    return object;
}

/* False: its code objects cannot be read now. */
static bool look_at(struct sampling *sampling, const struct prb_raw_thread *thread,
                    struct place *place)
{
    place->state = (struct prb_phase_state){0};
    place->count = 0;
    place->fresh = false;
    for (size_t i = thread->frame_count; i-- > 0;) {
        const struct prb_raw_frame *frame = &thread->frames[i];
        bool fresh = false;
        if (!frame->code)
            continue;
        const struct prb_code_object *code =
            prb_code_watched(sampling->runtime->py, sampling->codes, frame->code, &fresh, NULL);
        if (!code)
            return false;
        place->fresh |= fresh;
        enum prb_phase phase = function_phase(sampling, code);
        prb_phase_enter(&place->state, phase);
        prb_addr module = phase == PRB_PHASE_FORWARD && place->count < MODULES_MAX
                              ? module_of(sampling, frame)
                              : 0;
        if (module)
            place->modules[place->count++] = (struct module){thread->frame_count - i, module};
    }
    return true;
}

/* How many of the outermost frames are the same. */
static size_t standing(const struct prb_raw_thread *a, const struct prb_raw_thread *b)
{
    size_t count = 0;
    while (count < a->frame_count && count < b->frame_count) {
        const struct prb_raw_frame *x = &a->frames[a->frame_count - 1 - count],
                                   *y = &b->frames[b->frame_count - 1 - count];
        if (x->frame != y->frame || x->code != y->code)
            break;
        count++;
    }
    return count;
}

/* The innermost module whose frame is among so many; 0: none. */
static prb_addr module_within(const struct place *place, size_t frames)
{
    prb_addr module = 0;
    for (size_t i = 0; i < place->count && place->modules[i].frames <= frames; i++)
        module = place->modules[i].object;
    return module;
}

/* ---- what was seen ---- */

static struct tally *tally_of(struct sampling *sampling, const struct prb_raw_thread *thread)
{
    struct prb_hash_slot *slot = prb_hash_map_add(&sampling->by_tstate, thread->tstate);
    if (!slot)
        return NULL;
    if (slot->number)
        return &sampling->tallies[slot->number - 1];
    if (!PRB_GROW(sampling->tallies, sampling->tally_count, sampling->tally_cap))
        return NULL;
    struct tally *tally = &sampling->tallies[sampling->tally_count++];
    *tally = (struct tally){
        .tstate = thread->tstate, .thread_id = thread->thread_id, .native_id = thread->native_id};
    slot->number = sampling->tally_count;
    return tally;
}

static bool count(struct tally *tally, const struct prb_phase_state *state, prb_addr module)
{
    uint64_t key = module | (uint64_t)(1 + state->phase) << 56 | (uint64_t)state->activity << 52;
    struct prb_hash_slot *slot = prb_hash_map_add(&tally->by_key, key);
    if (!slot || (!slot->number && !PRB_GROW(tally->parts, tally->part_count, tally->cap)))
        return false;
    if (!slot->number) {
        tally->parts[tally->part_count++] = (struct prb_phase_part){
            .phase = state->phase, .activity = state->activity, .module = module};
        slot->number = tally->part_count;
    }
    tally->last = slot->number - 1;
    tally->has_last = true;
    return true;
}

static void count_last(struct tally *tally)
{
    tally->parts[tally->last].samples++;
    tally->samples++;
    tally->in_phase += tally->parts[tally->last].phase != PRB_PHASE_OTHER;
}

/*
 * The phase is that of the first reading: to wait for two that agree would count where a thread
 * stays, not where its time goes.  A module is believed if its frame still stands after it was
 * read, code objects that are new if all frames do.
 */
static bool sample_thread(struct sampling *sampling, size_t k)
{
    struct prb_sampler *sampler = sampling->runtime->sampler;
    const struct prb_raw_thread *thread = &prb_sampler_last(sampler)->threads[k];
    struct tally *tally = tally_of(sampling, thread);
    if (!tally)
        return false;
    if (thread->unmoved && tally->has_last) {
        count_last(tally);
        return true;
    }
    tally->has_last = false;
    for (int tries = 0; tries < TRIES; tries++) {
        struct place place;
        const struct prb_raw_thread before = *thread; /* its frames stay for one more reading */
        prb_objects_clear(sampling->objects);
        /* A chain that is broken was read while a frame was made. */
        bool known = !thread->broken.why && look_at(sampling, thread, &place);
        bool sure = known && !place.fresh && !place.count;
        if (!sure && !prb_sampler_reread(sampler, k, NULL))
            break;
        size_t stand = known && !sure ? standing(&before, thread) : 0;
        if (!known || (place.fresh && stand < before.frame_count))
            continue;
        if (!count(tally, &place.state, module_within(&place, stand)))
            return false;
        count_last(tally);
        return true;
    }
    tally->dropped++;
    return true;
}

static void announce(struct sampling *sampling, const struct prb_raw_stacks *raw)
{
    struct prb_py *py = sampling->runtime->py;
    prb_codes_next_sample(py, false);
    for (size_t i = 0; i < raw->thread_count; i++)
        for (size_t j = 0; !raw->threads[i].unmoved && j < raw->threads[i].frame_count; j++)
            if (raw->threads[i].frames[j].code)
                prb_code_prefetch(py, sampling->codes, raw->threads[i].frames[j].code);
    prb_view_refresh(&sampling->codes, 1, NULL, NULL);
}

static bool sample(struct sampling *sampling, struct prb_error *err)
{
    const struct prb_raw_stacks *raw = prb_sampler_take(sampling->runtime->sampler, 1, err);
    if (!raw)
        return false;
    announce(sampling, raw);
    for (size_t i = 0; i < raw->thread_count; i++)
        if (raw->threads[i].interpreter == 0 && !prb_thread_unborn(raw, i) &&
            !sample_thread(sampling, i))
            return prb_nomem(err);
    return true;
}

/* ---- the run ---- */

/* The one that is in a phase most often; else the main thread, CPython's first. */
static struct tally *trains(const struct sampling *sampling)
{
    struct tally *best = NULL;
    for (size_t i = 0; i < sampling->tally_count; i++) {
        struct tally *one = &sampling->tallies[i];
        if (one->in_phase && (!best || one->in_phase > best->in_phase))
            best = one;
    }
    const struct prb_raw_stacks *raw = prb_sampler_last(sampling->runtime->sampler);
    for (size_t i = raw->thread_count; !best && i-- > 0;)
        if (raw->threads[i].interpreter == 0)
            best = tally_of((struct sampling *)sampling, &raw->threads[i]);
    return best;
}

static void read_clock(struct sampling *sampling, struct prb_step_clock *clock, double now)
{
    const struct prb_raw_stacks *raw = prb_sampler_last(sampling->runtime->sampler);
    const struct tally *best = trains(sampling);
    const struct prb_raw_thread *thread = NULL;
    for (size_t i = 0; best && i < raw->thread_count; i++)
        if (raw->threads[i].tstate == best->tstate && !raw->threads[i].unstable)
            thread = &raw->threads[i];
    prb_step_clock_read(clock, now, sampling->runtime, thread);
}

/* From 0 to 1; x is not 0. */
static double at_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return (double)(*x >> 11) * 0x1p-53;
}

/* Each sample at a random moment of its own period, so that they are never in step with the job. */
static bool run(struct sampling *sampling, double seconds, double rate,
                struct prb_step_clock *clock, prb_phases_go_on_fn *go_on, void *context,
                struct prb_error *err)
{
    uint64_t random = prb_clock_ns() | 1;
    double began = prb_clock_s(), clock_at = began;
    for (uint64_t i = 0;; i++) {
        double moment = began + ((double)i + at_random(&random)) / rate, now = prb_clock_s();
        if (moment >= began + seconds || now >= began + seconds || !go_on(context))
            return true;
        if (moment + 1 / rate < now)
            continue; /* it took longer than a period */
        prb_clock_sleep_until(moment);
        if (!sample(sampling, err))
            return false;
        if (clock && moment >= clock_at) {
            read_clock(sampling, clock, prb_clock_s());
            clock_at = moment + CLOCK_EVERY_S;
        }
    }
}

static int by_samples(const void *a, const void *b)
{
    const struct prb_phase_part *x = a, *y = b;
    return x->samples < y->samples   ? 1
           : x->samples > y->samples ? -1
           : x->module < y->module   ? -1
                                     : x->module > y->module;
}

static bool finish(struct sampling *sampling, struct prb_phases *out)
{
    struct tally *best = trains(sampling);
    if (!best)
        return true;
    for (size_t i = 0; i < best->part_count; i++) {
        const char *type = prb_hash_map_pointer(&sampling->types, best->parts[i].module);
        if (best->parts[i].module && type && *type &&
            !(best->parts[i].type = prb_arena_strdup(&out->arena, type)))
            return false;
    }
    if (best->part_count)
        qsort(best->parts, best->part_count, sizeof *best->parts, by_samples);
    out->parts = PRB_STEAL(best->parts);
    out->part_count = best->part_count;
    out->samples = best->samples;
    out->dropped = best->dropped;
    out->thread_id = best->thread_id;
    out->native_id = best->native_id;
    return true;
}

bool prb_phases_take(struct prb_target *target, double seconds, double rate,
                     struct prb_step_clock *clock, prb_phases_go_on_fn *go_on, void *context,
                     struct prb_phases *out, struct prb_error *err)
{
    const struct prb_runtime *runtime = &target->runtimes[0];
    PRB_AUTO(prb_phases) struct prb_phases phases = {.begin = prb_clock_epoch_s()};
    PRB_AUTO(sampling) struct sampling sampling = {.runtime = runtime};
    sampling.objects = prb_objects_new(runtime->py, err);
    sampling.codes = sampling.objects ? prb_view_new(target->mem, UNIT, err) : NULL;
    if (!sampling.codes)
        return false;
    prb_sampler_expect_many(runtime->sampler);
    if (!run(&sampling, seconds, rate, clock, go_on, context, err))
        return false;
    if (!finish(&sampling, &phases))
        return prb_nomem(err);
    phases.end = prb_clock_epoch_s();
    *out = phases;
    phases = (struct prb_phases){0};
    return true;
}
