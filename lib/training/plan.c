/*
 * What the probe is told of PyTorch in its process: names of modules, the optimizers, which of them
 * is the anchor, and how far the program's own counter of steps is.  All of it is read from outside.
 */
#include <string.h>

#include "base/clock.h"
#include "inspect/heap.h"
#include "py/object/reader.h"
#include "tensor/tensor.h"
#include "training/clock.h"
#include "training/phase.h"

#define NAMES_MAX 20000 /* modules that are named */
#define OPTIMIZERS_MAX 256
#define READINGS_MAX 64
#define READINGS_ENOUGH 12 /* once a counter serves */
#define COUNTERS_MAX 64
#define HOPELESS 0.3 /* of the time: without a step until then there are too few until the end */
#define PAUSE_S                                                                                    \
    0.02 /* between two readings, and a sixteenth of what has passed: steps may be long */

PRB_DEFINE_AUTO_PTR(prb_heap, struct prb_heap, prb_heap_free)

static struct prb_heap *take_heap(struct prb_target *target, struct prb_error *err)
{
    const struct prb_stack_options options = {.all_interpreters = true};
    struct prb_stacks *stacks = prb_stacks_take(target, &options, err); /* finds interpreters */
    if (!stacks)
        return NULL;
    prb_stacks_free(stacks);
    return prb_heap_take(target, err);
}

/* ---- optimizers ---- */

struct adding {
    struct prb_objects *objects;
    uint64_t elements;
};

static bool add_parameter(void *context, prb_addr key, prb_addr value)
{
    struct adding *adding = context;
    struct prb_tensor tensor;
    (void)key;
    if (prb_object_kind(adding->objects, value, NULL) == PRB_OBJ_TENSOR &&
        prb_torch_read(adding->objects, value, &tensor, NULL) && tensor.numel > 0)
        adding->elements += (uint64_t)tensor.numel;
    return true;
}

static bool add_group(void *context, prb_addr key, prb_addr value)
{
    struct adding *adding = context;
    prb_addr params = 0;
    (void)key;
    if (prb_dict_get(adding->objects, value, "params", &params, NULL) && params)
        (void)prb_sequence_each(adding->objects, params, add_parameter, adding, NULL);
    return true;
}

/* An optimizer of a class of the same name has the next number. */
struct optimizers {
    const char *names[OPTIMIZERS_MAX];
    size_t count;
    prb_addr anchor;
    uint64_t most;
};

static void add_optimizer(struct optimizers *all, struct prb_objects *objects, prb_addr object,
                          const char *name, struct prb_buf *out)
{
    struct adding adding = {.objects = objects};
    prb_addr groups = 0;
    unsigned number = 0;
    if (all->count == OPTIMIZERS_MAX ||
        !prb_attribute_get(objects, object, "param_groups", &groups, NULL) || !groups)
        return;
    (void)prb_sequence_each(objects, groups, add_group, &adding, NULL);
    for (size_t i = 0; i < all->count; i++)
        number += strcmp(all->names[i], name) == 0;
    all->names[all->count++] = name;
    prb_buf_addf(out, "optimizer %llx %u %s\n", (unsigned long long)object, number, name);
    if (adding.elements > all->most) {
        all->most = adding.elements;
        all->anchor = object;
    }
}

static void add_optimizers(const struct prb_heap *heap, struct prb_buf *out)
{
    struct optimizers all = {0};
    for (size_t p = 0; p < heap->part_count; p++) {
        const struct prb_heap_part *part = &heap->parts[p];
        struct prb_objects *objects = part->runtime->objects;
        for (size_t i = 0; i < part->found.count; i++) {
            const struct prb_gc_object *found = &part->found.items[i];
            struct prb_object_type *type = prb_type_at(objects, found->type, NULL);
            if (type && prb_type_derives(objects, type, "Optimizer", "torch.optim.optimizer"))
                add_optimizer(&all, objects, found->object, prb_type_short_name(type), out);
        }
    }
    prb_buf_addf(out, "anchor %llx\n", (unsigned long long)all.anchor);
}

/* ---- the plan ---- */

char *prb_torch_plan(struct prb_target *target, struct prb_error *err)
{
    struct prb_heap *heap = take_heap(target, err);
    PRB_AUTO(prb_buf) struct prb_buf plan = {0};
    prb_heap_free(target->heap);
    target->heap = heap;
    if (!heap || !prb_heap_modules(heap, err))
        return NULL;
    for (size_t i = 0; i < heap->module_count && i < NAMES_MAX; i++) {
        const struct prb_module_node *node = &heap->modules[i];
        prb_buf_addf(&plan, "module %llx %llx %s\n", (unsigned long long)node->object,
                     (unsigned long long)heap->modules[node->root].object, node->name);
    }
    add_optimizers(heap, &plan);
    if (!prb_buf_ok(&plan))
        return PRB_NULL(prb_nomem(err));
    return prb_buf_steal(&plan);
}

/* ---- the program's own counter ---- */

struct reading {
    int64_t ended;
    size_t count;
    bool inside; /* a step's forward or backward: with variables */
    int64_t values[COUNTERS_MAX];
};

/* Which step's number it is.  A counter of the heap has that of the last step that ended, but for a
 * moment.  A variable has that of the step that runs: it may change anywhere between two steps. */
static bool difference_of(const struct prb_step_clock *clock, const struct reading *reading,
                          size_t counter, int64_t *out)
{
    bool variable = prb_step_clock_is_variable(clock, counter);
    if (counter >= reading->count || (variable && !reading->inside))
        return false;
    *out = reading->values[counter] - reading->ended - variable;
    return true;
}

/* The difference that most readings have: a counter is raised a little before or after a step ends.  Of
 * a variable that counts something else (batches, of which a step has several), most have another one. */
static bool usual(const struct prb_step_clock *clock, const struct reading *readings, size_t count,
                  size_t counter, int64_t *out)
{
    size_t most = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        int64_t here, there;
        if (!difference_of(clock, &readings[i], counter, &here))
            continue;
        all++;
        for (size_t k = 0; k < count; k++)
            same += difference_of(clock, &readings[k], counter, &there) && there == here;
        if (same > most) {
            most = same;
            *out = here;
        }
    }
    return most > (prb_step_clock_is_variable(clock, counter) ? all / 2 : 0);
}

/* ---- the thread that trains ---- */

static bool is_inside(const struct prb_runtime *runtime, const struct prb_raw_thread *thread)
{
    struct prb_phase_state state = {0};
    if (thread->interpreter || thread->unstable || thread->broken.why)
        return false;
    for (size_t i = thread->frame_count; i-- > 0;) {
        prb_addr address = thread->frames[i].code;
        const struct prb_code_object *code =
            address ? prb_code_get(runtime->py, address, true, NULL) : NULL;
        if (code)
            prb_phase_enter(&state, prb_phase_of_function(code->filename, code->name));
    }
    return state.phase == PRB_PHASE_FORWARD || state.phase == PRB_PHASE_BACKWARD;
}

/* A thread in a forward or a backward; always the same one.  NULL: it is elsewhere. */
static const struct prb_raw_thread *find_inside(const struct prb_runtime *runtime, prb_addr *whose)
{
    const struct prb_raw_stacks *raw = prb_sampler_take(runtime->sampler, 0, NULL);
    for (size_t i = 0; raw && i < raw->thread_count; i++) {
        const struct prb_raw_thread *thread = &raw->threads[i];
        if ((!*whose || *whose == thread->tstate) && is_inside(runtime, thread)) {
            *whose = thread->tstate;
            return thread;
        }
    }
    return NULL;
}

/* ---- readings ---- */

struct looking {
    struct prb_target *target;
    struct prb_step_clock *clock;
    bool (*ended)(void *context, int64_t *out);
    void *context;
    prb_addr thread; /* that trains; 0: not seen yet */
};

/* *good_out: no step ended meanwhile.  False: the probe does not answer. */
static bool read_once(struct looking *looking, struct reading *out, bool *good_out)
{
    const struct prb_runtime *runtime = &looking->target->runtimes[0];
    const struct prb_raw_thread *thread = NULL;
    int64_t after;
    size_t best;
    if (!looking->ended(looking->context, &out->ended))
        return false;
    if (!prb_step_clock_best(looking->clock, &best) ||
        prb_step_clock_is_variable(looking->clock, best)) /* else no variable is needed */
        thread = find_inside(runtime, &looking->thread);
    prb_step_clock_read(looking->clock, prb_clock_s(), runtime, thread);
    if (!looking->ended(looking->context, &after))
        return false;
    *good_out = after == out->ended;
    out->inside = thread != NULL;
    out->count = prb_step_clock_count(looking->clock);
    out->count = out->count < COUNTERS_MAX ? out->count : COUNTERS_MAX;
    for (size_t i = 0; i < out->count; i++)
        out->values[i] = prb_step_clock_last(looking->clock, i);
    return true;
}

bool prb_torch_counter(struct prb_target *target, bool (*ended)(void *context, int64_t *out),
                       void *context, double seconds, int64_t *offset_out, char *name, size_t size,
                       struct prb_error *err)
{
    PRB_AUTO(prb_heap)
    struct prb_heap *heap = target->heap ? PRB_STEAL(target->heap) : take_heap(target, err);
    PRB_AUTO(prb_step_clock)
    struct prb_step_clock *clock = heap ? prb_step_clock_new(heap, err) : NULL;
    PRB_AUTO_FREE struct reading *readings = calloc(READINGS_MAX, sizeof *readings);
    struct looking looking = {target, clock, ended, context, 0};
    double began = prb_clock_s(), until = began + seconds;
    size_t count = 0, tries = 0, best;
    bool serves = false;
    if (!clock || !readings)
        return clock ? prb_nomem(err) : false;
    while (prb_clock_s() < until && count < READINGS_MAX && (!serves || count < READINGS_ENOUGH)) {
        bool good;
        if (tries++)
            prb_clock_sleep_until(prb_clock_s() + PAUSE_S + (prb_clock_s() - began) / 16);
        if (!read_once(&looking, &readings[count], &good))
            return prb_fail(err, PRB_GONE, "the probe does not answer");
        if (!good)
            continue;
        count++;
        serves = prb_step_clock_best(clock, &best);
        if (readings[count - 1].ended == readings[0].ended &&
            prb_clock_s() > began + HOPELESS * seconds)
            break;
    }
    if (!serves || !usual(clock, readings, count, best, offset_out))
        return prb_fail(err, PRB_NOT_FOUND, "no number of the program counts its steps");
    snprintf(name, size, "%s", prb_step_clock_result(clock).name);
    return true;
}
