/* Variables of functions, watched from outside: see variables.h. */
#include "training/variables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "py/locals.h"
#include "py/object/reader.h"
#include "repr/repr.h"

#define CHARACTERS 256
#define TRIES 8 /* readings of one value */
#define FUNCTIONS_SHOWN 8

struct reading {
    prb_addr object; /* what the variable refers to; its value may lie deeper */
    bool known;
    struct prb_buf type, text;
    double number;
};
static void reading_deinit(struct reading *reading)
{
    prb_buf_deinit(&reading->type);
    prb_buf_deinit(&reading->text);
}
PRB_DEFINE_AUTO(reading, struct reading, reading_deinit)

/* What the clock said around a value. */
struct moment {
    int64_t *before, *after;
    size_t count;
};

struct watching {
    const struct prb_runtime *runtime;
    struct prb_objects *objects;
    struct prb_watched *watched;
    size_t count;
    struct prb_step_clock *clock;
    struct prb_variable_values *out;
    struct moment *moments; /* one for each value */
    size_t moment_cap, moment_count;
};

void prb_variable_values_deinit(struct prb_variable_values *values)
{
    free(values->items);
    prb_arena_deinit(&values->arena);
    *values = (struct prb_variable_values){0};
}

/* ---- one value ---- */

struct item_at {
    int64_t left;
    prb_addr value;
};

static bool take_item(void *context, prb_addr key, prb_addr value)
{
    struct item_at *item = context;
    (void)key;
    if (item->left-- > 0)
        return true;
    item->value = value;
    return false;
}

/* 0: there is none. */
static prb_addr follow(struct prb_objects *objects, prb_addr object,
                       const struct prb_watched_step *step)
{
    prb_addr value = 0;
    struct item_at item = {.left = step->index};
    bool good = step->is_attribute ? prb_attribute_get(objects, object, step->key, &value, NULL)
                : !step->is_index  ? prb_dict_get(objects, object, step->key, &value, NULL)
                : step->index < 0  ? false
                                   : prb_sequence_each(objects, object, take_item, &item, NULL);
    return good ? (step->is_index ? item.value : value) : 0;
}

/* A tensor of one element ends in " = 1.5" or " = [1.5]" (repr/torch.c). */
static double number_of(enum prb_object_kind kind, const char *text)
{
    char *end;
    if (kind == PRB_OBJ_BOOL)
        return *text == 'T';
    if (kind == PRB_OBJ_TENSOR || kind == PRB_OBJ_NDARRAY) {
        const char *value = strstr(text, ") = ");
        if (!value)
            return NAN;
        for (text = value + strlen(") = "); *text == '[';)
            text++;
    } else if (kind != PRB_OBJ_INT && kind != PRB_OBJ_FLOAT) {
        return NAN;
    }
    double number = strtod(text, &end);
    return end > text && (!*end || *end == ']') ? number : NAN;
}

struct looking {
    const struct prb_watched *watched;
    struct prb_objects *objects;
    struct reading *out;
};

static void read_value(const struct looking *looking, prb_addr object)
{
    struct reading *out = looking->out;
    const struct prb_repr_limits limits = {.characters = CHARACTERS};
    for (size_t i = 0; object && i < looking->watched->step_count; i++)
        object = follow(looking->objects, object, &looking->watched->steps[i]);
    if (!object || !prb_object_type_name(looking->objects, object, &out->type, NULL) ||
        !prb_object_repr(looking->objects, object, &limits, &out->text, NULL))
        return;
    prb_buf_add(&out->type, "", 0);
    prb_buf_add(&out->text, "", 0);
    out->known = prb_buf_ok(&out->type) && prb_buf_ok(&out->text);
    if (out->known)
        out->number = number_of(prb_object_kind(looking->objects, object, NULL), out->text.data);
}

static bool take_variable(void *context, const struct prb_variable *variable)
{
    const struct looking *looking = context;
    struct reading *out = looking->out;
    if (strcmp(variable->name, looking->watched->name) != 0)
        return true;
    out->object = variable->is_number ? (prb_addr)variable->number : variable->object;
    if (!variable->is_number) {
        read_value(looking, variable->object);
    } else if (!looking->watched->step_count) {
        prb_buf_adds(&out->type, "int");
        prb_buf_addf(&out->text, "%lld", (long long)variable->number);
        out->known = prb_buf_ok(&out->text);
        out->number = (double)variable->number;
    }
    return false;
}

static void read_once(struct watching *watching, const struct prb_watched *watched,
                      const struct prb_raw_frame *frame, const struct prb_code_object *code,
                      struct reading *out)
{
    struct looking looking = {watched, watching->objects, out};
    prb_objects_clear(watching->objects);
    out->number = NAN;
    (void)prb_locals_each(watching->objects, frame, code, take_variable, &looking, NULL);
}

static bool same_reading(const struct reading *a, const struct reading *b)
{
    return a->known && b->known && a->object == b->object && a->text.len == b->text.len &&
           memcmp(a->text.data, b->text.data, a->text.len) == 0 &&
           strcmp(a->type.data, b->type.data) == 0;
}

/* ---- the frames of a sample ---- */

static bool is_function(const struct prb_watched *watched, const struct prb_code_object *code)
{
    if (strcmp(code->name, watched->function) != 0 &&
        (!code->qualname || strcmp(code->qualname, watched->function) != 0))
        return false;
    if (!watched->module[0])
        return true;
    const char *file = code->filename ? prb_base_name(code->filename) : "";
    size_t len = strlen(watched->module);
    return strncmp(file, watched->module, len) == 0 && (!file[len] || file[len] == '.');
}

/* The frame that stands so far from the outermost one; NULL: another one does. */
static const struct prb_raw_frame *standing(const struct prb_raw_thread *thread, size_t from_below,
                                            const struct prb_raw_frame *was)
{
    if (from_below >= thread->frame_count)
        return NULL;
    const struct prb_raw_frame *frame = &thread->frames[thread->frame_count - 1 - from_below];
    return frame->frame == was->frame && frame->code == was->code ? frame : NULL;
}

static int64_t *clock_values(struct watching *watching, const struct prb_raw_thread *thread,
                             size_t *count)
{
    *count = 0;
    if (!watching->clock)
        return NULL;
    prb_step_clock_read(watching->clock, prb_clock_s(), watching->runtime, thread);
    size_t now = prb_step_clock_count(watching->clock);
    int64_t *values = prb_arena_alloc(&watching->out->arena, (now + 1) * sizeof *values);
    for (size_t i = 0; values && i < now; i++)
        values[i] = prb_step_clock_last(watching->clock, i);
    *count = values ? now : 0;
    return values;
}

static bool keep(struct watching *watching, size_t w, const struct prb_raw_thread *thread,
                 const char *function, const struct reading *reading, const struct moment *moment)
{
    struct prb_variable_values *out = watching->out;
    if (!PRB_GROW(out->items, out->count, out->cap) ||
        !PRB_GROW(watching->moments, watching->moment_count, watching->moment_cap))
        return false;
    struct prb_variable_value *item = &out->items[out->count];
    *item = (struct prb_variable_value){
        .watched = w,
        .at = prb_clock_epoch_s(),
        .native_id = thread->native_id,
        .function = prb_arena_strdup(&out->arena, function),
        .type = prb_arena_strdup(&out->arena, reading->type.data),
        .text = prb_arena_strdup(&out->arena, reading->text.data),
        .number = reading->number,
        .step = -1,
    };
    if (!item->function || !item->type || !item->text)
        return false;
    out->count++;
    watching->moments[watching->moment_count++] = *moment;
    return true;
}

/* The value of one variable in a frame that was found: read until two readings agree around which
 * the frame stood. */
static bool read_variable(struct watching *watching, size_t w, size_t thread_index,
                          const struct prb_raw_frame *found, size_t from_below,
                          const struct prb_code_object *code)
{
    struct prb_sampler *sampler = watching->runtime->sampler;
    struct prb_watched *watched = &watching->watched[w];
    const struct prb_raw_thread *thread = &prb_sampler_last(sampler)->threads[thread_index];
    const struct prb_raw_frame was = *found;
    bool any = false;
    for (int tries = 0; tries < TRIES; tries++) {
        PRB_AUTO(reading) struct reading first = {0};
        PRB_AUTO(reading) struct reading second = {0};
        struct moment moment = {0};
        size_t later;
        const struct prb_raw_frame *frame = standing(thread, from_below, &was);
        if (!frame)
            break;
        moment.before = clock_values(watching, thread, &moment.count);
        read_once(watching, watched, frame, code, &first);
        any |= first.known;
        if (!first.known || !prb_sampler_reread(sampler, thread_index, NULL) ||
            !(frame = standing(thread, from_below, &was)))
            continue;
        read_once(watching, watched, frame, code, &second);
        moment.after = clock_values(watching, thread, &later);
        moment.count = moment.count < later ? moment.count : later;
        if (!same_reading(&first, &second))
            continue;
        watched->found++;
        return keep(watching, w, thread, code->name, &first, &moment);
    }
    watching->out->dropped += any;
    return true;
}

static bool look_at_thread(struct watching *watching, size_t index, bool *seen)
{
    struct prb_py *py = watching->runtime->py;
    const struct prb_raw_thread *thread =
        &prb_sampler_last(watching->runtime->sampler)->threads[index];
    for (size_t i = 0; i < thread->frame_count; i++) {
        const struct prb_raw_frame *frame = &thread->frames[i];
        const struct prb_code_object *code =
            frame->code ? prb_code_get(py, frame->code, true, NULL) : NULL;
        size_t from_below = thread->frame_count - 1 - i;
        for (size_t w = 0; code && w < watching->count; w++) {
            if (seen[w] || !is_function(&watching->watched[w], code))
                continue;
            seen[w] = true;
            watching->watched[w].frames++;
            if (!read_variable(watching, w, index, frame, from_below, code))
                return false;
            /* The chain was read again: it may be another one. */
            if (i >= thread->frame_count || thread->frames[i].code != code->addr)
                return true;
        }
    }
    return true;
}

static bool sample(struct watching *watching, struct prb_error *err)
{
    struct prb_sampler *sampler = watching->runtime->sampler;
    const struct prb_raw_stacks *raw = prb_sampler_take(sampler, 0, err);
    bool seen[PRB_WATCHED_MAX] = {false};
    if (!raw)
        return false;
    prb_codes_new_reading(watching->runtime->py);
    for (size_t i = raw->thread_count; i-- > 0;) { /* the main thread, CPython's last, first */
        const struct prb_raw_thread *thread = &raw->threads[i];
        if (thread->interpreter == 0 && !thread->unstable && !thread->broken.why &&
            !prb_thread_unborn(raw, i) && !look_at_thread(watching, i, seen))
            return prb_nomem(err);
    }
    return true;
}

/* ---- the run ---- */

static bool run(struct watching *watching, double seconds, double rate,
                prb_variables_go_on_fn *go_on, void *context, struct prb_error *err)
{
    double began = prb_clock_s();
    for (uint64_t i = 0;; i++) {
        double moment = began + (double)i / rate;
        if (moment >= began + seconds || prb_clock_s() >= began + seconds || !go_on(context))
            return true;
        if (moment + 1 / rate < prb_clock_s())
            continue; /* it took longer than a period */
        prb_clock_sleep_until(moment);
        if (!sample(watching, err))
            return false;
    }
}

/* Give each value its step; drop those whose step changed meanwhile, and repetitions. */
static void finish(struct watching *watching)
{
    struct prb_variable_values *out = watching->out;
    size_t best, kept = 0;
    bool clocked = watching->clock && prb_step_clock_best(watching->clock, &best);
    out->clock = NULL;
    if (clocked)
        out->clock = prb_arena_strdup(&out->arena, prb_step_clock_result(watching->clock).name);
    for (size_t i = 0; i < out->count; i++) {
        struct prb_variable_value *item = &out->items[i];
        const struct moment *moment = &watching->moments[i];
        if (clocked && best < moment->count) {
            if (moment->before[best] != moment->after[best]) {
                out->dropped++;
                continue;
            }
            item->step = moment->before[best];
        }
        size_t last = kept;
        while (last > 0 && (out->items[last - 1].watched != item->watched ||
                            out->items[last - 1].native_id != item->native_id))
            last--;
        if (last > 0 && out->items[last - 1].step == item->step &&
            strcmp(out->items[last - 1].text, item->text) == 0)
            continue;
        out->items[kept++] = *item;
    }
    out->count = kept;
}

/* Names of functions that the main thread is in, outermost first. */
static void name_functions(struct watching *watching)
{
    const struct prb_raw_stacks *raw = prb_sampler_last(watching->runtime->sampler);
    PRB_AUTO(prb_buf) struct prb_buf names = {0};
    size_t shown = 0;
    for (size_t i = raw->thread_count; i-- > 0 && !shown;) {
        const struct prb_raw_thread *thread = &raw->threads[i];
        for (size_t f = thread->frame_count; f-- > 0 && shown < FUNCTIONS_SHOWN;) {
            const struct prb_code_object *code =
                thread->frames[f].code
                    ? prb_code_get(watching->runtime->py, thread->frames[f].code, false, NULL)
                    : NULL;
            if (code && code->name[0] != '<')
                prb_buf_addf(&names, "%s%s", shown++ ? ", " : "", code->name);
        }
    }
    if (prb_buf_ok(&names) && names.data)
        watching->out->functions = prb_arena_strdup(&watching->out->arena, names.data);
}

bool prb_variables_watch(struct prb_target *target, struct prb_watched *watched, size_t count,
                         double seconds, double rate, struct prb_step_clock *clock,
                         prb_variables_go_on_fn *go_on, void *context,
                         struct prb_variable_values *out, struct prb_error *err)
{
    const struct prb_runtime *runtime = &target->runtimes[0];
    PRB_AUTO(prb_variable_values) struct prb_variable_values values = {0};
    struct watching watching = {.runtime = runtime,
                                .watched = watched,
                                .count = count,
                                .clock = clock,
                                .out = &values,
                                .objects = prb_objects_new(runtime->py, err)};
    if (!watching.objects)
        return false;
    prb_sampler_expect_many(runtime->sampler);
    bool good = run(&watching, seconds, rate, go_on, context, err);
    if (good) {
        finish(&watching);
        name_functions(&watching);
        *out = values;
        values = (struct prb_variable_values){0};
    }
    free(watching.moments);
    prb_objects_free(watching.objects);
    return good;
}
