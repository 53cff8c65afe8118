/* Rows of what the hooks saw, into the rings of training/trace.h. */
#include <string.h>

#include "base/clock.h"
#include "inject/probe/tables/tables.h"
#include "inject/probe/torch/torch.h"

/* As the package `probing` makes it (python/probing_c/_spans.py): rows of both stand in one table. */
#define SPANS_RING "spans"
#define SPANS_COLUMNS                                                                              \
    "time:time:s:when it began\n"                                                                  \
    "duration:real:s:how long it took\n"                                                           \
    "name:text::as the program calls it\n"                                                         \
    "span_id:integer::number within the process\n"                                                 \
    "parent_id:integer::the span around it\n"                                                      \
    "os_thread_id:integer:id:the kernel's number of the thread\n"                                  \
    "step:integer::of probing.step\n"                                                              \
    "error:text::class of the exception that ended it\n"                                           \
    "attributes:text::JSON\n"
enum {
    TIME,
    DURATION,
    NAME,
    SPAN_ID,
    PARENT_ID,
    OS_THREAD_ID,
    STEP,
    ERROR,
    ATTRIBUTES,
    SPANS_COUNT
};
#define EVENTS_RING "events"
#define EVENTS_COLUMNS                                                                             \
    "time:time:s:when it was\n"                                                                    \
    "name:text::as the program calls it\n"                                                         \
    "span_id:integer::the span around it\n"                                                        \
    "os_thread_id:integer:id:the kernel's number of the thread\n"                                  \
    "step:integer::of probing.step\n"                                                              \
    "attributes:text::JSON\n"
enum { AT, WHAT, AT_SPAN, AT_THREAD, AT_STEP, WITH, EVENTS_COUNT };
#define LABEL_ATTRIBUTES "{\"source\": \"record_function\"}"

#define LOOKS 8
#define NEAR_NS 500 /* between two looks at the clock with nothing between */

static struct prb_ring_table *_Atomic trace, *_Atomic names, *_Atomic steps, *_Atomic devices,
    *_Atomic spans, *_Atomic events;
static atomic_bool with_memory; /* rows of trace have the allocator's numbers */
static _Atomic int64_t epoch;   /* ns from the monotonic clock to that of the epoch */

/* Who loses the CPU between two clocks is off by that, and so are all rows of a step: others' clocks
 * are compared with them.  The look that took the least time counts. */
static void set_epoch(void)
{
    uint64_t least = UINT64_MAX;
    int64_t found = 0;
    for (int look = 0; look < LOOKS && least > NEAR_NS; look++) {
        uint64_t before = prb_clock_ns();
        int64_t wall = prb_clock_epoch_ns();
        uint64_t took = prb_clock_ns() - before;
        if (took >= least)
            continue;
        least = took;
        found = wall - (int64_t)(before + took / 2);
    }
    epoch = found;
}

static int64_t epoch_ns(uint64_t at) { return (int64_t)at + epoch; }
static double time_of(uint64_t at) { return (double)epoch_ns(at) * 1e-9; }

/* One of both for a process: which, its first recording says. */
static struct prb_ring_table *begin_trace(struct prb_error *err)
{
    struct prb_ring_table *table = NULL;
    if (prb_cuda_allocator_is_there())
        table = prb_probe_table(PRB_TRACE_RING, PRB_TRACE_MEMORY_COLUMNS, err);
    with_memory = table != NULL;
    return table ? table : prb_probe_table(PRB_TRACE_RING, PRB_TRACE_COLUMNS, err);
}

bool prb_torch_record_begin(struct prb_error *err)
{
    set_epoch();
    names = prb_probe_table(PRB_TRACE_NAMES_RING, PRB_TRACE_NAMES_COLUMNS, err);
    steps = names ? prb_probe_table(PRB_TRACE_STEPS_RING, PRB_TRACE_STEPS_COLUMNS, err) : NULL;
    trace = steps ? begin_trace(err) : NULL;
    spans = trace ? prb_probe_table(SPANS_RING, SPANS_COLUMNS, NULL) : NULL;
    events = trace ? prb_probe_table(EVENTS_RING, EVENTS_COLUMNS, NULL) : NULL;
    if (trace) {
        prb_torch_record_process();
        prb_torch_labels_tell();
    }
    return trace != NULL;
}

void prb_torch_record_devices(void)
{
    if (trace && !devices)
        devices = prb_probe_table(PRB_TRACE_DEVICE_RING, PRB_TRACE_DEVICE_COLUMNS, NULL);
}

/* The handles stay valid: a hook that is under way drops its row. */
void prb_torch_record_end(void) { trace = names = steps = devices = spans = events = NULL; }

static int64_t owner(int64_t tid)
{
    return prb_trace_word(atomic_load_explicit(&prb_torch.arming, memory_order_relaxed),
                          (uint64_t)tid);
}

/* What the allocator has now.  Not inlined: where there is none a row is to cost what it did. */
__attribute__((noinline)) static void write_with_memory(struct prb_ring_table *table,
                                                        const struct prb_torch_event *event,
                                                        const int64_t cells[PRB_TRACE_COLUMN_COUNT])
{
    struct prb_ring_value row[PRB_TRACE_MEMORY_COLUMN_COUNT];
    struct prb_cuda_memory now = {0};
    const struct prb_cuda_memory *before = event->before;
    bool known = prb_cuda_memory_read(&now), grown = known && before;
    for (int i = 0; i < PRB_TRACE_COLUMN_COUNT; i++)
        row[i] = (struct prb_ring_value){.integer = cells[i]};
    row[PRB_TRACE_BEGIN].real = time_of(event->begin);
    for (int i = PRB_TRACE_ALLOCATED; i < PRB_TRACE_MEMORY_COLUMN_COUNT; i++)
        row[i] = (struct prb_ring_value){.null = i < PRB_TRACE_ALLOCATED_DELTA ? !known : !grown};
    row[PRB_TRACE_ALLOCATED].integer = now.allocated;
    row[PRB_TRACE_MAX_ALLOCATED].integer = now.max_allocated;
    row[PRB_TRACE_CACHED].integer = now.reserved;
    row[PRB_TRACE_MAX_CACHED].integer = now.max_reserved;
    if (grown) {
        row[PRB_TRACE_ALLOCATED_DELTA].integer = now.allocated - before->allocated;
        row[PRB_TRACE_MAX_ALLOCATED_DELTA].integer = now.max_allocated - before->max_allocated;
    }
    prb_ring_write_at(table, row, epoch_ns(event->end));
}

void prb_torch_record(const struct prb_torch_event *event)
{
    struct prb_ring_table *table = atomic_load_explicit(&trace, memory_order_relaxed);
    bool module = event->stage == PRB_TRACE_FORWARD;
    unsigned weight = 1;
    if (module || event->stage == PRB_TRACE_SCOPE)
        weight = atomic_load_explicit(&prb_torch.weight, memory_order_relaxed);
    if (module)
        weight *= atomic_load_explicit(&prb_torch.layer_weight, memory_order_relaxed);
    unsigned micro_step = atomic_load_explicit(&prb_torch.micro_step, memory_order_relaxed);
    if (!table)
        return;
    double begin = time_of(event->begin);
    int64_t row[PRB_TRACE_COLUMN_COUNT] = {
        [PRB_TRACE_DURATION] = (int64_t)(event->end - event->begin),
        [PRB_TRACE_OBJECT] = (int64_t)event->object,
        [PRB_TRACE_LABEL] = event->label,
        [PRB_TRACE_PLACE] =
            prb_trace_place(event->stage, event->recompute, event->async, event->depth, weight),
        [PRB_TRACE_STEP] = event->step,
        [PRB_TRACE_ORDER] = prb_trace_word(micro_step, event->number),
        [PRB_TRACE_THREAD] = owner(event->tid),
    };
    memcpy(&row[PRB_TRACE_BEGIN], &begin, sizeof begin);
    if (atomic_load_explicit(&with_memory, memory_order_relaxed))
        write_with_memory(table, event, row);
    else
        prb_ring_write_cells(table, row, epoch_ns(event->end));
}

void prb_torch_record_device_step(const struct prb_torch_device_step *step)
{
    struct prb_ring_table *table = devices;
    if (!table)
        return;
    const struct prb_ring_value row[PRB_TRACE_DEVICE_COLUMN_COUNT] = {
        [PRB_TRACE_DEVICE_END] = {.real = time_of(step->end)},
        [PRB_TRACE_DEVICE_STEP] = {.integer = step->step},
        [PRB_TRACE_DEVICE_FORWARD] = {.integer = (int64_t)step->spent[PRB_PHASE_FORWARD]},
        [PRB_TRACE_DEVICE_BACKWARD] = {.integer = (int64_t)step->spent[PRB_PHASE_BACKWARD]},
        [PRB_TRACE_DEVICE_OPTIMIZER] = {.integer = (int64_t)step->spent[PRB_PHASE_OPTIMIZER]},
        [PRB_TRACE_DEVICE_THREAD] = {.integer = prb_trace_word(step->arming, (uint64_t)step->tid)},
    };
    prb_ring_write(table, row);
}

/* step: global, once the program's own counter is known. */
void prb_torch_record_span(const struct prb_torch_event *event, const char *name)
{
    struct prb_ring_table *table = spans;
    if (!table)
        return;
    const struct prb_ring_value row[SPANS_COUNT] = {
        [TIME] = {.real = time_of(event->begin)},
        [DURATION] = {.real = (double)(event->end - event->begin) * 1e-9},
        [NAME] = {.text = name, .len = strlen(name)},
        [SPAN_ID] = {.null = true},
        [PARENT_ID] = {.null = true},
        [OS_THREAD_ID] = {.integer = event->tid},
        [STEP] = {.integer = event->step + atomic_load(&prb_torch.offset)},
        [ERROR] = {.null = true},
        [ATTRIBUTES] = {.text = LABEL_ATTRIBUTES, .len = sizeof LABEL_ATTRIBUTES - 1},
    };
    prb_ring_write(table, row);
}

void prb_torch_record_moment(const char *name, const char *attributes)
{
    struct prb_ring_table *table = events;
    if (!table)
        return;
    const struct prb_ring_value row[EVENTS_COUNT] = {
        [AT] = {.real = time_of(prb_clock_ns())},
        [WHAT] = {.text = name, .len = strlen(name)},
        [AT_SPAN] = {.null = true},
        [AT_THREAD] = {.null = true},
        [AT_STEP] = {.integer = atomic_load(&prb_torch.step) + atomic_load(&prb_torch.offset)},
        [WITH] = {.text = attributes, .len = strlen(attributes)},
    };
    prb_ring_write(table, row);
}

/* A step's times are cut to what says something, as the rest is noise that takes most of a row in the
 * store: its duration to 256 ns from 1 ms on, as its end is (2^-22 s), what a phase took of it to a part
 * in 4,096 to 8,192 of it.  Phases stay within their step, and sum to no more than it. */
static int64_t cut(uint64_t ns, unsigned bits) { return (int64_t)(ns >> bits << bits); }

static unsigned duration_bits(const struct prb_torch_step *step)
{
    return step->duration < 1000000 ? 0 : 8;
}

static int64_t phase(const struct prb_torch_step *step, enum prb_torch_phase which)
{
    unsigned bits = duration_bits(step), most = 63 - (unsigned)__builtin_clzll(step->duration | 1);
    return cut(step->spent[which], bits && most > bits + 12 ? most - 12 : bits);
}

void prb_torch_record_step(const struct prb_torch_step *step)
{
    struct prb_ring_table *table = steps;
    set_epoch();
    if (!table)
        return;
    const struct prb_ring_value row[PRB_TRACE_STEP_COLUMN_COUNT] = {
        [PRB_TRACE_STEP_END] = {.real = time_of(step->end)},
        [PRB_TRACE_STEP_STEP] = {.integer = step->step},
        [PRB_TRACE_STEP_DURATION] = {.integer = cut(step->duration, duration_bits(step))},
        [PRB_TRACE_STEP_DATA] = {.integer = phase(step, PRB_PHASE_DATA)},
        [PRB_TRACE_STEP_FORWARD] = {.integer = phase(step, PRB_PHASE_FORWARD)},
        [PRB_TRACE_STEP_BACKWARD] = {.integer = phase(step, PRB_PHASE_BACKWARD)},
        [PRB_TRACE_STEP_OPTIMIZER] = {.integer = phase(step, PRB_PHASE_OPTIMIZER)},
        [PRB_TRACE_STEP_COMM_WAIT] = {.integer = phase(step, PRB_PHASE_COMM_WAIT)},
        [PRB_TRACE_STEP_COUNTS] = {.integer = prb_trace_word(step->updates, step->micro_steps)},
        [PRB_TRACE_STEP_EVENTS] = {.integer = (int64_t)step->events},
        [PRB_TRACE_STEP_RATE] = {.integer = prb_trace_word(step->sampled | step->shadow << 1,
                                                           step->weight)},
        /* To a thousandth of a percent, as small integers are small in the store: 7 bytes a row otherwise. */
        [PRB_TRACE_STEP_OVERHEAD] = {.real = (double)(int64_t)(step->overhead * 1e5 + 0.5) / 1e5},
        [PRB_TRACE_STEP_OBJECT] = {.integer = (int64_t)step->object},
        [PRB_TRACE_STEP_LABEL] = {.integer = step->label},
        [PRB_TRACE_STEP_THREAD] = {.integer = owner(step->tid)},
    };
    prb_ring_write(table, row);
}

void prb_torch_record_name(enum prb_trace_kind kind, int64_t key, const char *name, size_t name_len,
                           const char *class_name, int64_t number)
{
    struct prb_ring_table *table = names;
    if (!table)
        return;
    const struct prb_ring_value row[PRB_TRACE_NAME_COLUMN_COUNT] = {
        [PRB_TRACE_NAME_KIND] = {.integer = kind},
        [PRB_TRACE_NAME_ARMING] = {.integer = atomic_load(&prb_torch.arming)},
        [PRB_TRACE_NAME_KEY] = {.integer = key},
        [PRB_TRACE_NAME_NAME] = {.null = !name, .text = name, .len = name ? name_len : 0},
        [PRB_TRACE_NAME_CLASS] = {.null = !class_name,
                                  .text = class_name,
                                  .len = class_name ? strlen(class_name) : 0},
        [PRB_TRACE_NAME_NUMBER] = {.integer = number},
    };
    prb_ring_write(table, row);
}
