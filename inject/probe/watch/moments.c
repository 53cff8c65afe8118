/*
 * Reading what is watched, and writing it: see watch.h.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "inject/probe/libc.h"
#include "inject/probe/tables/tables.h"
#include "inject/probe/torch/frames.h"
#include "inject/probe/torch/hooks.h"
#include "inject/probe/torch/torch.h"
#include "inject/probe/watch/watch.h"
#include "training/trace.h"
#include "training/variable_rows.h"

#define FRAMES 128    /* that are looked through */
#define STACK_STEPS 3 /* found so often at a step's end, a function needs no look at its returns */
#define QUIET_NS INT64_C(10000000000) /* without a moment: there are no steps */
#define LAYOUT (&prb_watch_facts.layout)

static atomic_flag lock = ATOMIC_FLAG_INIT;
static struct prb_watch_list *list; /* with the lock */
static struct prb_ring_table *_Atomic table;

/* co_names, for a look with the GIL or the lock: who changes them has the GIL, and drops them after
 * having had the lock. */
static struct {
    const char *_Atomic name, *_Atomic text; /* interned; where it may not be, its text */
} names[PRB_WATCH_FUNCTIONS_MAX];

static int64_t last_moment; /* ns; 0: none yet */

static void acquire(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        sched_yield();
}
static void release(void) { atomic_flag_clear_explicit(&lock, memory_order_release); }

/* With the lock. */
static int64_t thread_id(void)
{
    static pthread_t last;
    static int64_t id;
    if (!id || !pthread_equal(last, pthread_self())) {
        last = pthread_self();
        id = (int64_t)syscall(SYS_gettid);
    }
    return id;
}

/* ---- rows ---- */

struct row {
    int64_t time; /* ns */
    int64_t step; /* -1: outside of all */
    unsigned micro_step, arming;
    int64_t thread;
    bool asked, begins;
};

static struct prb_ring_value text_of(const char *text, size_t len)
{
    return (struct prb_ring_value){.null = !text, .text = text, .len = text ? len : 0};
}

static void write_row(const struct row *row, const char *function, const char *name,
                      const struct prb_watch_value *value)
{
    struct prb_ring_table *to = atomic_load_explicit(&table, memory_order_relaxed);
    if (!to)
        return;
    const char *type = value->bound ? value->type : NULL;
    bool is_text = value->why || (value->bound && value->type &&
                                  (value->text_len || !strcmp(value->type, "str")));
    const struct prb_ring_value values[PRB_VARIABLES_COLUMN_COUNT] = {
        [PRB_VARIABLES_TIME] = {.real = (double)row->time * 1e-9},
        [PRB_VARIABLES_STEP] = {.null = row->step < 0, .integer = row->step < 0 ? 0 : row->step},
        [PRB_VARIABLES_MICRO_STEP] = {.null = row->step < 0 && !row->begins,
                                      .integer = row->begins     ? PRB_VARIABLES_BEGINS
                                                 : row->step < 0 ? 0
                                                                 : row->micro_step},
        [PRB_VARIABLES_FUNC] = text_of(function, function ? strlen(function) : 0),
        [PRB_VARIABLES_NAME] = text_of(name, strlen(name)),
        [PRB_VARIABLES_VALUE] = text_of(is_text ? value->text : NULL, value->text_len),
        [PRB_VARIABLES_NUMBER] = {.null = !value->bound || !value->has_number,
                                  .real = value->bound && value->has_number ? value->number : 0},
        [PRB_VARIABLES_TYPE] = text_of(type, type ? strlen(type) : 0),
        [PRB_VARIABLES_ASKED] = {.integer = row->asked},
        [PRB_VARIABLES_THREAD] = {.integer = prb_trace_word(row->arming, (uint64_t)row->thread)},
    };
    prb_ring_write_at(to, values, row->time);
}

/* Rows whose value is on its way from a device: the oldest first. */
#define WAITING 64u /* as many as device.c has places; a power of two */
static struct waiting {
    struct row row;
    bool of_function;
    char function[PRB_WATCHED_TEXT_MAX], name[PRB_WATCHED_TEXT_MAX];
    struct prb_watch_value value;
} waiting[WAITING];
static unsigned first_waiting, after_waiting; /* counts */

static void put_row(const struct row *row, const char *function, const char *name,
                    const struct prb_watch_value *value)
{
    if (!value->ticket || after_waiting - first_waiting == WAITING ||
        !prb_watch_device_keep(value->ticket)) {
        write_row(row, function, name, value);
        return;
    }
    struct waiting *one = &waiting[after_waiting++ % WAITING];
    one->row = *row;
    one->value = *value;
    one->of_function = function;
    snprintf(one->function, sizeof one->function, "%s", function ? function : "");
    snprintf(one->name, sizeof one->name, "%s", name);
}

/* With the lock: those that have come. */
static void write_arrived(void)
{
    uint64_t bytes;
    while (first_waiting != after_waiting) {
        struct waiting *one = &waiting[first_waiting % WAITING];
        if (!prb_watch_device_take(one->value.ticket, &bytes))
            return;
        first_waiting++;
        prb_watch_value_arrived(bytes, &one->value);
        write_row(&one->row, one->of_function ? one->function : NULL, one->name, &one->value);
    }
}

static void forget_waiting(void)
{
    first_waiting = after_waiting = 0;
    prb_watch_device_forget();
}

/* Read along and not there, or there by another name already: no row. */
static bool is_shown(const struct prb_watch_variable *variable)
{
    if (variable->asked)
        return true;
    if (!variable->value.bound || (!variable->value.has_number && !variable->value.ticket))
        return false;
    for (unsigned i = 0; i < list->variable_count; i++) {
        const struct prb_watch_variable *other = &list->variables[i];
        if (other == variable)
            return true;
        if (!other->asked && other->function == variable->function && other->read &&
            other->value.bound)
            return false;
    }
    return true;
}

/* NULL: of none, as it was not found. */
static const char *function_of(const struct prb_watch_variable *variable)
{
    const struct prb_watch_function *function = &list->functions[variable->function];
    return function->last ? function->name : variable->value.bound ? variable->where : NULL;
}

/* The step that ended last, whose rows are written when the next thing begins. */
static struct {
    struct row row;
    bool has_rate;
    struct prb_watch_value rate;
} held;

/* With the lock: what is held becomes rows.  rests: but for what has its value later. */
static void flush(bool rests)
{
    struct row row = held.row;
    for (unsigned i = 0; list && i < list->variable_count; i++) {
        struct prb_watch_variable *variable = &list->variables[i];
        if (!variable->held.is || (rests && variable->late))
            continue;
        variable->held.is = false;
        row.thread = variable->held.thread;
        row.asked = variable->asked;
        put_row(&row, function_of(variable), variable->text, &variable->held.value);
    }
    if (held.has_rate && row.step >= 0) {
        row.asked = false;
        row.thread = held.row.thread;
        write_row(&row, NULL, PRB_VARIABLES_LR, &held.rate);
    }
    held.has_rate = false;
}

/* With the lock: the values that were read are those of a step. */
static void hold(int64_t step, unsigned micro_step, unsigned arming)
{
    flush(false);
    held.row = (struct row){.time = prb_clock_epoch_ns(),
                            .step = step,
                            .micro_step = micro_step,
                            .arming = arming,
                            .thread = thread_id()};
    for (unsigned i = 0; i < list->variable_count; i++) {
        struct prb_watch_variable *variable = &list->variables[i];
        if (variable->read && is_shown(variable))
            variable->held =
                (struct prb_watch_held){.is = true,
                                        .again = variable->asked && !variable->by_return,
                                        .thread = variable->thread,
                                        .value = variable->value};
    }
    for (unsigned i = 0; i < list->variable_count; i++)
        list->variables[i].read = false;
    const struct prb_watch_value *rate = prb_watch_rate_take();
    if (rate) {
        held.has_rate = true;
        held.rate = *rate;
    }
}

/* ---- reading ---- */

struct reading {
    bool gil;
    bool ends;      /* the last moment of a step: not a backward's end */
    bool by_return; /* of the function itself */
};

static const struct prb_watch_reader direct = {.direct = true}, safe = {.direct = false};

/* NULL: the way ends at *end_out, which has not what the step *step_out names; or object is NULL. */
static const char *follow(const struct prb_watch_reader *reader, const char *object,
                          const struct prb_watch_variable *variable, const char **end_out,
                          size_t *step_out)
{
    *end_out = NULL;
    for (size_t i = 0; object && i < variable->step_count; i++) {
        const struct prb_watch_step *step = &variable->steps[i];
        const char *key = (const char *)step->key;
        *end_out = object;
        *step_out = i;
        object = step->is_attribute ? prb_watch_attribute(reader, object, key)
                 : step->is_index   ? prb_watch_item(reader, object, step->index)
                                    : prb_watch_dict_get(reader, object, key);
    }
    return object;
}

/* The place of the variable in frames of a code.  Looked up each time: a code object may have the
 * address of one that is gone. */
static int place_of(const struct prb_watch_variable *variable, const char *code)
{
    return prb_watch_local_index(code, (const char *)variable->name);
}

static void read_value(const struct prb_watch_variable *variable, const char *frame,
                       const char *code, int index, bool gil, struct prb_watch_value *out)
{
    bool is_number;
    int64_t number;
    const char *object = prb_watch_local(gil ? &direct : &safe, frame, code, index,
                                         (const char *)variable->name, &is_number, &number);
    if (is_number && !variable->step_count) {
        prb_watch_value_of_int(number, out);
        return;
    }
    /* What a local refers to lives as long as its frame waits for us. */
    bool stays = !variable->step_count && index >= 0;
    const struct prb_watch_reader *reader = gil || stays ? &direct : &safe;
    const char *end;
    size_t step = 0;
    object = follow(gil ? &direct : &safe, object, variable, &end, &step);
    prb_watch_value(reader, object, out);
    if (!object && end)
        prb_watch_value_ends(reader, end, variable->text, variable->steps[step].at,
                             step + 1 < variable->step_count ? variable->steps[step + 1].at
                                                             : strlen(variable->text),
                             out);
}

static void begin_reading(struct prb_watch_variable *variable, bool by_return)
{
    variable->read = true;
    variable->by_return = by_return;
    variable->thread = thread_id();
}

/* Without the GIL, what is read along stays as the backward before found it. */
static bool is_read_along_already(const struct prb_watch_variable *variable, bool gil)
{
    return !gil && !variable->asked && variable->read;
}

/* What the step's end is going to read: a backward need not. */
static bool is_read_later(const struct prb_watch_variable *variable, bool ends)
{
    return !ends && variable->asked && list->functions[variable->function].on_stack >= STACK_STEPS;
}

static void read_function(unsigned function, const char *frame, const char *code,
                          const struct reading *reading)
{
    bool gil = reading->gil;
    for (unsigned i = 0; i < list->variable_count; i++) {
        struct prb_watch_variable *variable = &list->variables[i];
        if (variable->function != function || is_read_along_already(variable, gil) ||
            is_read_later(variable, reading->ends))
            continue;
        /* Another function of that name, such as a wrapper, has no such variable. */
        int index = place_of(variable, code);
        if (variable->read && index < 0 && !prb_watch_has_names(code))
            continue;
        bool other = variable->read && variable->value.bound && variable->code != code;
        if (other && variable->step_count) { /* it may have another self */
            struct prb_watch_value value;
            read_value(variable, frame, code, index, gil, &value);
            if (!value.bound)
                continue;
        }
        begin_reading(variable, reading->by_return);
        variable->code = code;
        read_value(variable, frame, code, index, gil, &variable->value);
    }
}

/* Of whoever calls: what an earlier moment of the step found stays where this one finds nothing. */
static void read_caller(struct prb_watch_variable *variable, bool gil)
{
    struct prb_watch_value value;
    if (!variable->read)
        variable->value = (struct prb_watch_value){.bound = false};
    begin_reading(variable, false);
    variable->code = NULL;
    const char *frame = prb_torch_frame();
    for (int depth = 0; frame && depth < FRAMES; frame = prb_torch_frame_caller(frame), depth++) {
        const char *code = prb_torch_frame_code(frame);
        if (!code)
            continue;
        read_value(variable, frame, code, place_of(variable, code), gil, &value);
        if (!value.bound && value.why && !variable->value.bound && !variable->value.why)
            variable->value = value;
        if (!value.bound || prb_watch_is_torch(code))
            continue;
        variable->value = value;
        variable->code = code;
        prb_watch_function_name(code, variable->where);
        return;
    }
}

static void read_callers(bool gil)
{
    bool epoch = false; /* read along, it has been found */
    for (unsigned i = 0; i < list->variable_count; i++) {
        struct prb_watch_variable *variable = &list->variables[i];
        if (list->functions[variable->function].last || (epoch && !variable->asked) ||
            is_read_along_already(variable, gil))
            continue;
        read_caller(variable, gil);
        epoch |= !variable->asked && variable->value.bound;
    }
}

/* This thread's frames, the innermost of each function. */
static void read_stack(const struct reading *reading)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < list->function_count; i++) {
        list->functions[i].found = false;
        missing += list->functions[i].last != NULL;
    }
    read_callers(reading->gil);
    const char *frame = prb_torch_frame();
    for (int depth = 0; frame && missing && depth < FRAMES;
         frame = prb_torch_frame_caller(frame), depth++) {
        const char *code = prb_torch_frame_code(frame);
        if (!code || !prb_watch_knows(code))
            continue;
        for (unsigned i = 0; i < list->function_count; i++) {
            if (list->functions[i].found || !prb_watch_is(&list->functions[i], code))
                continue;
            list->functions[i].found = true;
            missing--;
            read_function(i, frame, code, reading);
        }
    }
}

/* A value that has come since is told; that it is gone since is not. */
static void read_held(struct prb_watch_variable *variable, const char *frame, const char *code)
{
    struct prb_watch_held *was = &variable->held;
    struct prb_watch_value value;
    read_value(variable, frame, code, place_of(variable, code), false, &value);
    bool is_worse = !value.bound || (was->value.has_number && !value.has_number && !value.ticket);
    variable->late = !is_worse && value.has_number &&
                     !(was->value.has_number && was->value.number == value.number);
    if (!is_worse)
        was->value = value;
}

/* The frames that stood at the end of the step, where its thread asks for the next batch. */
static void read_again(void)
{
    const char *frame = prb_torch_frame();
    for (int depth = 0; frame && depth < FRAMES; frame = prb_torch_frame_caller(frame), depth++) {
        const char *code = prb_torch_frame_code(frame);
        for (unsigned i = 0; code && i < list->variable_count; i++) {
            struct prb_watch_variable *variable = &list->variables[i];
            if (!variable->held.is || !variable->held.again || variable->code != code)
                continue;
            variable->held.again = false;
            read_held(variable, frame, code);
        }
    }
}

static void count_found(void)
{
    for (unsigned i = 0; i < list->function_count; i++) {
        struct prb_watch_function *function = &list->functions[i];
        function->on_stack = function->found || !function->last ? function->on_stack + 1 : 0;
    }
}

static bool returns_needed(void)
{
    bool needed = false;
    for (unsigned i = 0; i < list->function_count; i++)
        needed |= list->functions[i].on_stack < STACK_STEPS || list->functions[i].ends_step;
    return needed;
}

static void refer(struct prb_py *optimizer)
{
    struct prb_py *reference = prb_watch_rate_refer(optimizer);
    acquire();
    reference = prb_watch_rate_keep(optimizer, reference);
    release();
    prb_py_drop(reference);
    prb_py_drop(optimizer);
}

static void on_next(const struct prb_torch_now *now)
{
    acquire();
    if (list && now->batch)
        read_again();
    flush(now->rests);
    release();
}

static void on_moment(const struct prb_torch_now *now)
{
    if (now->moment == PRB_TORCH_NEXT_BEGINS) {
        on_next(now);
        return;
    }
    bool ends = now->moment != PRB_TORCH_BACKWARD_ENDS;
    struct prb_py *unreferred = NULL;
    acquire();
    if (list) {
        last_moment = prb_clock_epoch_ns();
        write_arrived();
        read_stack(&(struct reading){.gil = now->gil, .ends = ends});
        unreferred = prb_watch_rate_at(now);
        if (ends) {
            count_found();
            hold(now->local_step, now->micro_step, now->arming);
            if (!now->followed)
                flush(false);
        }
        if (now->gil)
            prb_watch_evaluator_needed(returns_needed());
    }
    release();
    if (unreferred)
        refer(unreferred);
}

/* ---- returns ---- */

bool prb_watch_knows(const char *code)
{
    uint64_t name = prb_torch_word(code, PRB_OFF(LAYOUT, code, name));
    for (unsigned i = 0; i < PRB_WATCH_FUNCTIONS_MAX; i++) {
        const char *one = atomic_load_explicit(&names[i].name, memory_order_relaxed);
        if (!one)
            return false;
        const char *text = atomic_load_explicit(&names[i].text, memory_order_relaxed);
        if ((uintptr_t)one == name ||
            (text && prb_watch_is_named((const char *)(uintptr_t)name, text)))
            return true;
    }
    return false;
}

/* With the lock: what a return read becomes rows of no step. */
static void flush_returned(unsigned function)
{
    struct row row = {.time = prb_clock_epoch_ns(), .step = -1, .asked = true};
    for (unsigned i = 0; i < list->variable_count; i++) {
        struct prb_watch_variable *variable = &list->variables[i];
        if (variable->function != function || !variable->read || !variable->by_return)
            continue;
        variable->read = false;
        row.thread = variable->thread;
        if (variable->asked)
            put_row(&row, list->functions[function].name, variable->text, &variable->value);
    }
}

void prb_watch_returned(const char *frame, const char *code)
{
    static const struct reading at_return = {.gil = true, .ends = true, .by_return = true};
    acquire();
    bool torch = atomic_load_explicit(&prb_torch.on, memory_order_relaxed);
    bool ends_step = false;
    write_arrived();
    bool none = last_moment <= 0,
         steps = torch && !none && prb_clock_epoch_ns() - last_moment < QUIET_NS;
    for (unsigned i = 0; list && i < list->function_count; i++) {
        if (!prb_watch_is(&list->functions[i], code))
            continue;
        ends_step |= list->functions[i].ends_step;
        if (torch && none) /* the first step may still run: the last value is its own */
            flush_returned(i);
        read_function(i, frame, code, &at_return);
        if (!steps && !(torch && none))
            flush_returned(i);
    }
    release();
    struct prb_torch_thread *thread = ends_step && torch ? prb_torch_thread() : NULL;
    if (thread)
        prb_torch_step_ends(thread, prb_clock_ns(), true);
}

/* ---- begin and end ---- */

bool prb_watch_rows_begin(struct prb_error *err)
{
    table = prb_probe_table(PRB_VARIABLES_RING, PRB_VARIABLES_COLUMNS, err);
    return table && (prb_torch_listen(on_moment) ||
                     prb_fail(err, PRB_BUSY, "too many listen to moments of training"));
}

void prb_watch_rows_end(void)
{
    prb_torch_unlisten(on_moment);
    table = NULL;
}

static void forget_names(void)
{
    for (unsigned i = 0; i < PRB_WATCH_FUNCTIONS_MAX; i++)
        names[i].name = names[i].text = NULL;
}

struct prb_watch_list *prb_watch_set(struct prb_watch_list *new)
{
    forget_names();
    unsigned named = 0;
    acquire();
    struct prb_watch_list *before = list;
    flush(false);
    list = new;
    last_moment = 0;
    forget_waiting();
    prb_watch_rate_begin();
    const struct row row = {
        .time = prb_clock_epoch_ns(), .step = -1, .asked = true, .begins = true};
    const struct prb_watch_value nothing = {.bound = false};
    for (unsigned i = 0; new && i < new->variable_count; i++)
        if (new->variables[i].asked)
            write_row(&row, new->functions[new->variables[i].function].name, new->variables[i].text,
                      &nothing);
    release();
    for (unsigned i = 0; new && i < new->function_count; i++)
        if (new->functions[i].last) {
            names[named].text = new->functions[i].text;
            names[named++].name = (const char *)new->functions[i].last;
        }
    return before;
}

void prb_watch_moments_forked(void)
{
    atomic_flag_clear(&lock);
    list = NULL;
    table = NULL;
    held.has_rate = false;
    first_waiting = after_waiting = 0;
    prb_watch_device_forked();
    forget_names();
}
