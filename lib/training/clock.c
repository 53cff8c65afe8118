/* Numbers that may count steps, and which of them does: see clock.h. */
#include "training/clock.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash_map.h"
#include "base/real.h"
#include "py/locals.h"
#include "py/object/reader.h"
#include "tensor/tensor.h"

#define COUNTERS_MAX 256 /* a job has few; more would cost time in each reading */
#define CHANGES_MIN 2    /* fewer may be anything */
#define BASES_MAX 16
#define MISSED_MAX 5      /* readings in a row: then the object is not there any more */
#define STALE_S 60.0      /* counters are looked for anew */
#define LOOK_AGAIN_S 10.0 /* the same, where none serves, or one has ended */
#define FRAMES_MAX 64     /* of the thread that trains, from its outermost on */

static const struct known {
    const char *type, *attribute;
} known[] = {
#define CLOCK(type, attribute) {type, attribute},
#include "training/clocks.def"
#undef CLOCK
};
enum { KNOWN = sizeof known / sizeof *known };

/* How much a counter is trusted: the index in known, then these. */
enum { TRUST_OPTIMIZER = KNOWN, TRUST_LOADER, TRUST_VARIABLE };

/* Names that a loop gives the number of its step. */
static const char *const variables[] = {"global_step", "iteration",   "iter_num",  "it",
                                        "step",        "batch_index", "batch_idx", "batch_id",
                                        "n_iter",      "i",           NULL};

struct counter {
    unsigned trust;
    const char *name;      /* for the row */
    const char *attribute; /* of object, an int; NULL: another kind of place */
    prb_addr object;       /* the instance; or the frame of a variable */
    prb_addr type;         /* of the instance, or the frame's code: another one, and it has ended */
    uint64_t readings;     /* that found it */
    prb_addr element;      /* a tensor's; 0: none */
    bool is_double;        /* the element: of 8 bytes */
    bool gone, fell;
    unsigned missed; /* readings in a row that failed */
    int64_t batch;   /* of a loader's: so many items a count; 0: not known */
    int64_t first, last;
    unsigned changes;                 /* since the restart */
    unsigned ever;                    /* changes of all time */
    double first_change, last_change; /* s */
    int64_t at_first_change;
    bool read;
};

struct prb_step_clock {
    struct prb_objects *objects;
    struct counter *counters;
    size_t count, cap;
    size_t found;    /* those of the heap; behind them variables */
    double made;     /* s, monotonic */
    bool ended;      /* an iterator of a loader has ended: there may be a new one */
    uint64_t stacks; /* readings with the thread's frames */
    struct prb_arena arena;
};

void prb_step_clock_free(struct prb_step_clock *clock)
{
    if (!clock)
        return;
    prb_objects_free(clock->objects);
    free(clock->counters);
    prb_arena_deinit(&clock->arena);
    free(clock);
}

/* ---- finding them ---- */

static struct counter *add(struct prb_step_clock *clock, unsigned trust, const char *format,
                           const char *a, const char *b)
{
    char name[192];
    if (clock->count == COUNTERS_MAX || !PRB_GROW(clock->counters, clock->count, clock->cap))
        return NULL;
    snprintf(name, sizeof name, format, a, b);
    struct counter *counter = &clock->counters[clock->count];
    *counter = (struct counter){.trust = trust, .name = prb_arena_strdup(&clock->arena, name)};
    clock->count += counter->name != NULL;
    return counter->name ? counter : NULL;
}

/* Whether a class or one that it inherits from, by its first bases, has the name. */
static bool inherits(struct prb_objects *objects, const struct prb_object_type *type,
                     const char *name)
{
    for (int depth = 0; type && depth < BASES_MAX; depth++) {
        if (strcmp(prb_type_short_name(type), name) == 0)
            return true;
        type = type->base ? prb_type_at(objects, type->base, NULL) : NULL;
    }
    return false;
}

/* A DataLoader's iterator has the sampler that makes its batches, unless the program makes them. */
static int64_t batch_of(struct prb_objects *objects, prb_addr iterator)
{
    prb_addr sampler = 0, size = 0;
    int64_t batch;
    if (prb_attribute_get(objects, iterator, "_index_sampler", &sampler, NULL) && sampler &&
        prb_attribute_get(objects, sampler, "batch_size", &size, NULL) && size &&
        prb_object_kind(objects, size, NULL) == PRB_OBJ_INT &&
        prb_object_int(objects, size, &batch, NULL) && batch > 0)
        return batch;
    return 0;
}

static void add_attribute(struct prb_step_clock *clock, unsigned trust,
                          const struct prb_gc_object *found, const struct prb_object_type *type,
                          const char *attribute)
{
    struct counter *counter = add(clock, trust, "%s.%s", prb_type_short_name(type), attribute);
    if (!counter)
        return;
    counter->object = found->object;
    counter->type = found->type;
    counter->attribute = attribute;
    if (trust == TRUST_LOADER)
        counter->batch = batch_of(clock->objects, found->object);
}

struct first_item {
    prb_addr value;
};

static bool take_first(void *context, prb_addr key, prb_addr value)
{
    (void)key;
    ((struct first_item *)context)->value = value;
    return false;
}

/* optimizer.state[a parameter]["step"]: a tensor of one element on the CPU. */
static void add_optimizer(struct prb_step_clock *clock, struct prb_objects *objects,
                          const struct prb_gc_object *found, const struct prb_object_type *type)
{
    prb_addr state, step = 0;
    struct first_item first = {0};
    struct prb_tensor tensor;
    if (!prb_attribute_get(objects, found->object, "state", &state, NULL) || !state ||
        !prb_dict_each(objects, state, take_first, &first, NULL) || !first.value ||
        !prb_dict_get(objects, first.value, "step", &step, NULL) || !step ||
        prb_object_kind(objects, step, NULL) != PRB_OBJ_TENSOR ||
        !prb_torch_read(objects, step, &tensor, NULL) || tensor.numel != 1 || !tensor.data ||
        strcmp(tensor.device, "cpu") != 0 ||
        (strcmp(tensor.dtype, "float32") != 0 && strcmp(tensor.dtype, "float64") != 0))
        return;
    struct counter *counter =
        add(clock, TRUST_OPTIMIZER, "%s.state[…][\"%s\"]", prb_type_short_name(type), "step");
    if (!counter)
        return;
    counter->element = tensor.data;
    counter->is_double = strcmp(tensor.dtype, "float64") == 0;
    counter->object = step;
    counter->type = prb_type_of(objects, step, NULL)->addr;
}

/* What an instance of a class may have: 1 + index in known, or 1 + a TRUST_; 0: nothing. */
static uint64_t trust_of(struct prb_objects *objects, struct prb_object_type *type)
{
    if (!type || !type->python)
        return 0;
    if (prb_type_derives(objects, type, "Optimizer", "torch.optim.optimizer"))
        return 1 + TRUST_OPTIMIZER;
    for (unsigned i = 0; i < KNOWN; i++)
        if (inherits(objects, type, known[i].type))
            return 1 + i;
    return inherits(objects, type, "_BaseDataLoaderIter") ? 1 + TRUST_LOADER : 0;
}

static void search(struct prb_step_clock *clock, const struct prb_heap_part *part)
{
    enum { UNKNOWN = 0, NOTHING = 1, SOMETHING = 2 };
    struct prb_objects *objects = part->runtime->objects;
    PRB_AUTO(prb_hash_map) struct prb_hash_map types = {0};
    for (size_t i = 0; i < part->found.count; i++) {
        const struct prb_gc_object *found = &part->found.items[i];
        struct prb_hash_slot *slot = prb_hash_map_add(&types, found->type);
        if (!slot)
            return;
        if (slot->number == UNKNOWN)
            slot->number = NOTHING + trust_of(objects, prb_type_at(objects, found->type, NULL));
        if (slot->number < SOMETHING)
            continue;
        unsigned trust = (unsigned)(slot->number - SOMETHING);
        const struct prb_object_type *type = prb_type_at(objects, found->type, NULL);
        if (!type)
            continue;
        if (trust == TRUST_OPTIMIZER)
            add_optimizer(clock, objects, found, type);
        else
            add_attribute(clock, trust, found, type,
                          trust == TRUST_LOADER ? "_num_yielded" : known[trust].attribute);
    }
}

struct prb_step_clock *prb_step_clock_new(const struct prb_heap *heap, struct prb_error *err)
{
    PRB_AUTO(prb_step_clock) struct prb_step_clock *clock = calloc(1, sizeof *clock);
    if (!clock)
        return PRB_NULL(prb_nomem(err));
    clock->made = prb_clock_s();
    for (size_t i = 0; i < heap->part_count && !clock->objects; i++)
        if (heap->parts[i].interpreter == 0 &&
            !(clock->objects = prb_objects_new(heap->parts[i].runtime->py, err)))
            return NULL;
    for (size_t i = 0; i < heap->part_count; i++)
        if (heap->parts[i].interpreter == 0)
            search(clock, &heap->parts[i]);
    clock->found = clock->count;
    return PRB_STEAL(clock);
}

void prb_step_clock_restart(struct prb_step_clock *clock)
{
    size_t kept = clock->found;
    for (size_t i = 0; i < clock->count; i++) {
        struct counter counter = clock->counters[i];
        if (i >= clock->found && counter.readings != clock->stacks)
            continue; /* a variable whose frame has left */
        counter.first = counter.last;
        counter.changes = 0;
        counter.readings = 0;
        clock->counters[i < clock->found ? i : kept++] = counter;
    }
    clock->count = kept;
    clock->stacks = 0;
}

bool prb_step_clock_is_stale(const struct prb_step_clock *clock)
{
    size_t index;
    double age = prb_clock_s() - clock->made;
    return age > STALE_S ||
           (age > LOOK_AGAIN_S && (clock->ended || !prb_step_clock_best(clock, &index)));
}

/* ---- reading them ---- */

static void note(struct counter *counter, int64_t value, double now)
{
    counter->readings++;
    if (!counter->read) {
        counter->first = counter->last = value;
        counter->read = true;
        return;
    }
    if (value == counter->last)
        return;
    counter->fell |= value < counter->last;
    counter->ever++;
    if (!counter->changes++) {
        counter->first_change = now;
        counter->at_first_change = value;
    }
    counter->last_change = now;
    counter->last = value;
}

/* Of a tensor's element: a whole number. */
static bool read_element(struct prb_objects *objects, const struct counter *counter, int64_t *out)
{
    const void *bytes = prb_objects_get(objects, counter->element,
                                        counter->is_double ? sizeof(double) : sizeof(float));
    if (!bytes)
        return false;
    double value;
    float single;
    if (counter->is_double) {
        memcpy(&value, bytes, sizeof value);
    } else {
        memcpy(&single, bytes, sizeof single);
        value = (double)single;
    }
    if (!(value >= 0 && value < 0x1p53) || value != prb_floor(value))
        return false;
    *out = (int64_t)value;
    return true;
}

static bool read_counter(struct prb_objects *objects, const struct counter *counter, int64_t *out)
{
    const struct prb_object_type *type = prb_type_of(objects, counter->object, NULL);
    prb_addr value = 0;
    if (!type || type->addr != counter->type)
        return false;
    if (counter->element)
        return read_element(objects, counter, out);
    return prb_attribute_get(objects, counter->object, counter->attribute, &value, NULL) && value &&
           prb_object_kind(objects, value, NULL) == PRB_OBJ_INT &&
           prb_object_int(objects, value, out, NULL);
}

struct frame_variables {
    struct prb_step_clock *clock;
    const struct prb_code_object *code;
    prb_addr frame;
    double now;
};

static struct counter *variable_counter(struct frame_variables *frame, const char *name)
{
    struct prb_step_clock *clock = frame->clock;
    for (size_t i = 0; i < clock->count; i++) {
        struct counter *one = &clock->counters[i];
        if (one->trust == TRUST_VARIABLE && one->object == frame->frame &&
            one->type == frame->code->addr && strcmp(one->attribute, name) == 0)
            return one;
    }
    struct counter *made = add(clock, TRUST_VARIABLE, "%s of %s", name, frame->code->name);
    if (made) {
        made->object = frame->frame;
        made->type = frame->code->addr;
        made->attribute = name;
    }
    return made;
}

static bool take_variable(void *context, const struct prb_variable *variable)
{
    struct frame_variables *frame = context;
    struct prb_objects *objects = frame->clock->objects;
    int64_t value = variable->number;
    for (size_t i = 0; variables[i]; i++) {
        if (strcmp(variables[i], variable->name) != 0)
            continue;
        bool is = variable->is_number ||
                  (prb_object_kind(objects, variable->object, NULL) == PRB_OBJ_INT &&
                   prb_object_int(objects, variable->object, &value, NULL));
        struct counter *counter = is ? variable_counter(frame, variables[i]) : NULL;
        if (counter)
            note(counter, value, frame->now);
    }
    return true;
}

/* The variables of the frames that the thread has been in longest; one that a reading does not find
 * is of a frame that does not stay. */
static void read_variables(struct prb_step_clock *clock, double now,
                           const struct prb_runtime *runtime, const struct prb_raw_thread *thread)
{
    clock->stacks++;
    size_t least = thread->frame_count > FRAMES_MAX ? thread->frame_count - FRAMES_MAX : 0;
    for (size_t i = thread->frame_count; i-- > least;) {
        const struct prb_raw_frame *frame = &thread->frames[i];
        const struct prb_code_object *code =
            frame->code ? prb_code_get(runtime->py, frame->code, true, NULL) : NULL;
        struct frame_variables context = {clock, code, frame->frame, now};
        if (code)
            (void)prb_locals_each(clock->objects, frame, code, take_variable, &context, NULL);
    }
}

void prb_step_clock_read(struct prb_step_clock *clock, double now,
                         const struct prb_runtime *runtime, const struct prb_raw_thread *thread)
{
    if (!clock->objects)
        return;
    prb_objects_clear(clock->objects);
    for (size_t i = 0; i < clock->count; i++) {
        struct counter *counter = &clock->counters[i];
        int64_t value;
        if (counter->gone || counter->trust == TRUST_VARIABLE)
            continue;
        counter->missed++;
        if (read_counter(clock->objects, counter, &value)) {
            note(counter, value, now);
            counter->missed = 0;
        }
        counter->gone = counter->missed && (!counter->read || counter->missed >= MISSED_MAX);
        clock->ended |= counter->gone && counter->trust == TRUST_LOADER;
    }
    if (thread)
        read_variables(clock, now, runtime, thread);
}

size_t prb_step_clock_count(const struct prb_step_clock *clock) { return clock->count; }

int64_t prb_step_clock_last(const struct prb_step_clock *clock, size_t index)
{
    return clock->counters[index].last;
}

bool prb_step_clock_is_variable(const struct prb_step_clock *clock, size_t index)
{
    return clock->counters[index].trust == TRUST_VARIABLE;
}

bool prb_step_clock_best(const struct prb_step_clock *clock, size_t *out)
{
    const struct counter *best = NULL;
    for (size_t i = 0; i < clock->count; i++) {
        const struct counter *one = &clock->counters[i];
        if (one->trust == TRUST_VARIABLE && one->readings != clock->stacks)
            continue;
        if (!one->gone && !one->fell && one->ever >= CHANGES_MIN &&
            (!best || one->trust < best->trust))
            best = one;
    }
    if (best)
        *out = (size_t)(best - clock->counters);
    return best != NULL;
}

static double rate_of(const struct counter *counter)
{
    double between = counter->last_change - counter->first_change;
    return counter->changes >= CHANGES_MIN && between > 0
               ? (double)(counter->last - counter->at_first_change) / between
               : 0;
}

/* Of the loader that gave the most batches. */
static double items_per_second(const struct prb_step_clock *clock)
{
    const struct counter *best = NULL;
    for (size_t i = 0; i < clock->found; i++) {
        const struct counter *one = &clock->counters[i];
        if (one->batch && !one->fell && one->changes >= CHANGES_MIN &&
            (!best || one->changes > best->changes))
            best = one;
    }
    return best ? rate_of(best) * (double)best->batch : 0;
}

struct prb_step_count prb_step_clock_result(const struct prb_step_clock *clock)
{
    size_t index;
    if (!prb_step_clock_best(clock, &index))
        return (struct prb_step_count){.items_per_second = items_per_second(clock)};
    const struct counter *best = &clock->counters[index];
    return (struct prb_step_count){
        .name = best->name,
        .first = best->first,
        .last = best->last,
        .steps = best->last - best->first,
        .per_second = rate_of(best),
        .items_per_second = items_per_second(clock),
    };
}
