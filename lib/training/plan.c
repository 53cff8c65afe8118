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
    int64_t values[COUNTERS_MAX];
};

/* The difference that most readings have: a counter is raised a little before or after a step ends. */
static bool usual(const struct reading *readings, size_t count, size_t counter, int64_t *out)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        if (counter >= readings[i].count)
            continue;
        int64_t difference = readings[i].values[counter] - readings[i].ended;
        for (size_t k = 0; k < count; k++)
            same += counter < readings[k].count &&
                    readings[k].values[counter] - readings[k].ended == difference;
        if (same > most) {
            most = same;
            *out = difference;
        }
    }
    return most > 0;
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
    double began = prb_clock_s(), until = began + seconds;
    size_t count = 0, tries = 0, best;
    bool serves = false;
    if (!clock || !readings)
        return clock ? prb_nomem(err) : false;
    while (prb_clock_s() < until && count < READINGS_MAX && (!serves || count < READINGS_ENOUGH)) {
        struct reading *reading = &readings[count];
        int64_t after;
        if (tries++)
            prb_clock_sleep_until(prb_clock_s() + PAUSE_S + (prb_clock_s() - began) / 16);
        if (!ended(context, &reading->ended))
            return prb_fail(err, PRB_GONE, "the probe does not answer");
        prb_step_clock_read(clock, prb_clock_s(), NULL, NULL);
        if (!ended(context, &after) || after != reading->ended)
            continue;
        reading->count = prb_step_clock_count(clock);
        reading->count = reading->count < COUNTERS_MAX ? reading->count : COUNTERS_MAX;
        for (size_t i = 0; i < reading->count; i++)
            reading->values[i] = prb_step_clock_last(clock, i);
        count++;
        serves = prb_step_clock_best(clock, &best);
        if (reading->ended == readings[0].ended && prb_clock_s() > began + HOPELESS * seconds)
            break;
    }
    if (!serves || !usual(readings, count, best, offset_out))
        return prb_fail(err, PRB_NOT_FOUND, "no number of the program counts its steps");
    snprintf(name, size, "%s", prb_step_clock_result(clock).name);
    return true;
}
