/* python.torch_trace: calls of modules and phases of steps, as the probe recorded them. */
#include <stdio.h>
#include <string.h>

#include "table/recorded/each.h"
#include "table/shared/thread_columns.h"
#include "table/shared/torch_names.h"
#include "table/shared/unrecorded.h"

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "when it began, since the epoch"},
    PRB_TORCH_PROCESS_COLUMNS,
    PRB_TORCH_STEP_COLUMNS,
    {"micro_step", PRB_INTEGER, "", "outermost backwards of the step before it"},
    {"micro_batches", PRB_INTEGER, "count", "outermost backwards of the step; NULL: it goes on"},
    {"seq", PRB_INTEGER, "", "its place in the step, by beginning, among those of its thread"},
    {"module", PRB_TEXT, "", "as in torch.modules; \"\" for a root; NULL: no module, or not named"},
    {"root", PRB_INTEGER, "addr", "of the module's root, as in torch.modules"},
    {"operation_name", PRB_TEXT, "", "class and stage, \"Linear.forward\", or the label"},
    {"stage", PRB_TEXT, "", "forward, backward, optimizer, zero_grad, data, scope"},
    {"optimizer", PRB_TEXT, "", "class and number of the optimizer, \"AdamW#0\""},
    {"depth", PRB_INTEGER, "count", "calls of modules that it lies in"},
    {"recompute", PRB_INTEGER, "", "1: within a backward, as checkpointing does"},
    {"thread", PRB_INTEGER, "id", "native id"},
    {"duration", PRB_REAL, "s", "of the CPU's side"},
    {"duration_ms", PRB_REAL, "ms", "the same"},
    {"time_offset", PRB_REAL, "s", "from the step's begin; NULL: it goes on"},
    {"weight", PRB_INTEGER, "count", "steps that it stands for: one in so many was sampled"},
    {"gpu_ms", PRB_REAL, "ms",
     "NULL: what a GPU took is known by step, gpu_forward and such of torch_step_timing"},
    {"allocated", PRB_REAL, "MB",
     "in tensors when it ended, by PyTorch's caching allocator of all CUDA devices; NULL: the "
     "program uses none, or another allocator"},
    {"max_allocated", PRB_REAL, "MB", "the most of it so far, of each device"},
    {"cached", PRB_REAL, "MB", "what the same allocator has of the driver"},
    {"max_cached", PRB_REAL, "MB", "the most of it so far, of each device"},
    {"allocated_delta", PRB_REAL, "MB", "by which allocated grew meanwhile"},
    {"max_allocated_delta", PRB_REAL, "MB", "by which max_allocated grew meanwhile"},
    {"resolution", PRB_TEXT, "",
     "raw: one call; minute, hour: the mean of its module's calls in it, weight says of how many"},
    {0},
};

static const char *const stages[PRB_TRACE_STAGES] = {
    [PRB_TRACE_FORWARD] = "forward",     [PRB_TRACE_BACKWARD] = "backward",
    [PRB_TRACE_OPTIMIZER] = "optimizer", [PRB_TRACE_ZERO_GRAD] = "zero_grad",
    [PRB_TRACE_DATA] = "data",           [PRB_TRACE_SCOPE] = "scope",
};

struct filling;
struct call {
    const struct prb_ring_value *values;
    enum prb_store_resolution resolution;
    unsigned stage;
};
typedef void put_fn(const struct filling *filling, const struct call *call);

#define PARTS_MAX 32
struct filling {
    struct prb_rows *rows;
    struct prb_torch_names names;
    struct {
        size_t skipped; /* columns before it that nobody asks for */
        put_fn *put;
    } parts[PARTS_MAX]; /* those that somebody asks for, in the order of the columns */
    size_t count;
};

/* ---- cells ---- */

static int64_t integer_of(const struct call *call, enum prb_trace_column column)
{
    return call->values[column].integer;
}
static int64_t arming_of(const struct call *call)
{
    return PRB_TRACE_HIGH(integer_of(call, PRB_TRACE_THREAD));
}
static double duration_of(const struct call *call)
{
    return (double)integer_of(call, PRB_TRACE_DURATION) * 1e-9;
}
static const struct prb_torch_ended *ended_of(const struct filling *filling,
                                              const struct call *call)
{
    return prb_torch_step_at(&filling->names, arming_of(call), integer_of(call, PRB_TRACE_STEP));
}

static void put_begin(const struct filling *filling, const struct call *call)
{
    prb_row_real(filling->rows, call->values[PRB_TRACE_BEGIN].real);
}
static void put_process(const struct filling *filling, const struct call *call)
{
    (void)call;
    prb_row_torch_process(filling->rows, &filling->names);
}
static void put_steps(const struct filling *filling, const struct call *call)
{
    prb_row_torch_steps(filling->rows, &filling->names, arming_of(call),
                        integer_of(call, PRB_TRACE_STEP));
}
static void put_micro_step(const struct filling *filling, const struct call *call)
{
    prb_row_int(filling->rows, PRB_TRACE_HIGH(integer_of(call, PRB_TRACE_ORDER)));
}
static void put_micro_batches(const struct filling *filling, const struct call *call)
{
    const struct prb_torch_ended *ended = ended_of(filling, call);
    prb_row_int_unless(filling->rows, ended ? ended->micro_steps : -1, -1);
}
static void put_seq(const struct filling *filling, const struct call *call)
{
    prb_row_int(filling->rows, PRB_TRACE_LOW(integer_of(call, PRB_TRACE_ORDER)));
}
static void put_module(const struct filling *filling, const struct call *call)
{
    const struct prb_torch_name *module =
        call->stage == PRB_TRACE_FORWARD ? prb_torch_object_of(&filling->names, arming_of(call),
                                                               integer_of(call, PRB_TRACE_OBJECT))
                                         : NULL;
    prb_row_text(filling->rows, module ? module->name : NULL);
    prb_row_int_unless(filling->rows, module ? module->number : 0, 0);
}

#define CLASS_MAX 128
/* Of a module or an optimizer; NULL: it is neither.  text: to hold it. */
static const char *class_of(const struct call *call, const char *label, char text[CLASS_MAX])
{
    return call->stage == PRB_TRACE_FORWARD ? label : prb_torch_class_of(label, text, CLASS_MAX);
}
static void put_operation(const struct filling *filling, const struct call *call)
{
    char text[192], held[CLASS_MAX];
    const char *label = prb_torch_label_of(&filling->names, integer_of(call, PRB_TRACE_LABEL));
    const char *class_name =
        call->stage == PRB_TRACE_BACKWARD ? "Tensor" : class_of(call, label, held);
    if (call->stage == PRB_TRACE_SCOPE || !class_name) {
        prb_row_text(filling->rows, label);
        return;
    }
    snprintf(text, sizeof text, "%s.%s", class_name, stages[call->stage]);
    prb_row_text(filling->rows, text);
}
static void put_stage(const struct filling *filling, const struct call *call)
{
    prb_row_text(filling->rows, stages[call->stage]);
}
static void put_optimizer(const struct filling *filling, const struct call *call)
{
    char held[CLASS_MAX];
    const struct prb_torch_names *names = &filling->names;
    bool updates = call->stage == PRB_TRACE_OPTIMIZER || call->stage == PRB_TRACE_ZERO_GRAD;
    const char *label = prb_torch_label_of(names, integer_of(call, PRB_TRACE_LABEL));
    prb_row_torch_optimizer(filling->rows, names, arming_of(call),
                            integer_of(call, PRB_TRACE_OBJECT),
                            updates ? class_of(call, label, held) : NULL);
}
static void put_depth(const struct filling *filling, const struct call *call)
{
    prb_row_int(filling->rows, PRB_TRACE_DEPTH(integer_of(call, PRB_TRACE_PLACE)));
}
static void put_recompute(const struct filling *filling, const struct call *call)
{
    bool recompute = PRB_TRACE_RECOMPUTE(integer_of(call, PRB_TRACE_PLACE));
    prb_row_int(filling->rows, call->stage == PRB_TRACE_FORWARD && recompute);
}
static void put_thread(const struct filling *filling, const struct call *call)
{
    prb_row_int(filling->rows, PRB_TRACE_LOW(integer_of(call, PRB_TRACE_THREAD)));
}
static void put_duration(const struct filling *filling, const struct call *call)
{
    prb_row_real(filling->rows, duration_of(call));
}
static void put_duration_ms(const struct filling *filling, const struct call *call)
{
    prb_row_real(filling->rows, duration_of(call) * 1e3);
}
static void put_time_offset(const struct filling *filling, const struct call *call)
{
    const struct prb_torch_ended *ended =
        call->resolution == PRB_STORE_RAW ? ended_of(filling, call) : NULL;
    if (ended)
        prb_row_real(filling->rows, call->values[PRB_TRACE_BEGIN].real - ended->begin);
    else
        prb_row_null(filling->rows);
}
static void put_weight(const struct filling *filling, const struct call *call)
{
    prb_row_int(filling->rows, PRB_TRACE_WEIGHT(integer_of(call, PRB_TRACE_PLACE)));
}
static void put_unknown(const struct filling *filling, const struct call *call)
{
    (void)call;
    prb_row_null(filling->rows);
}
/* In MB, of bytes. */
static void put_mb(const struct filling *filling, const struct prb_ring_value *bytes)
{
    if (bytes->null)
        prb_row_null(filling->rows);
    else
        prb_row_real(filling->rows, (double)bytes->integer / (1 << 20));
}
static void put_allocated(const struct filling *filling, const struct call *call)
{
    put_mb(filling, &call->values[PRB_TRACE_ALLOCATED]);
}
static void put_max_allocated(const struct filling *filling, const struct call *call)
{
    put_mb(filling, &call->values[PRB_TRACE_MAX_ALLOCATED]);
}
static void put_cached(const struct filling *filling, const struct call *call)
{
    put_mb(filling, &call->values[PRB_TRACE_CACHED]);
}
static void put_max_cached(const struct filling *filling, const struct call *call)
{
    put_mb(filling, &call->values[PRB_TRACE_MAX_CACHED]);
}
static void put_allocated_delta(const struct filling *filling, const struct call *call)
{
    put_mb(filling, &call->values[PRB_TRACE_ALLOCATED_DELTA]);
}
static void put_max_allocated_delta(const struct filling *filling, const struct call *call)
{
    put_mb(filling, &call->values[PRB_TRACE_MAX_ALLOCATED_DELTA]);
}
static void put_resolution(const struct filling *filling, const struct call *call)
{
    prb_row_text(filling->rows, prb_recorded_resolution(call->resolution));
}

/*
 * All columns, in their order; some that stand side by side are made at once.  A row calls only
 * those that the statement asks for: a call for each column, of which most are not wanted, would
 * be the larger half of a statement's time.
 */
#define RING(column) (UINT64_C(1) << PRB_TRACE_##column)
#define OF_MODULE (RING(OBJECT) | RING(THREAD))
#define OF_STEP (RING(STEP) | RING(THREAD))
#define OF_MEMORY (~(RING(ALLOCATED) - 1)) /* which not every process has */
enum names { NO_NAMES, NAMES, STEPS /* also those of the steps that have ended */ };
static const struct part {
    size_t columns;
    uint64_t needs; /* columns of the ring, beyond begin and place */
    enum names names;
    put_fn *put;
} parts[] = {
    {1, 0, NO_NAMES, put_begin},
    {4, 0, NAMES, put_process},
    {2, OF_STEP, NAMES, put_steps},
    {1, RING(ORDER), NO_NAMES, put_micro_step},
    {1, OF_STEP, STEPS, put_micro_batches},
    {1, RING(ORDER), NO_NAMES, put_seq},
    {2, OF_MODULE, NAMES, put_module},
    {1, RING(LABEL), NAMES, put_operation},
    {1, 0, NO_NAMES, put_stage},
    {1, OF_MODULE | RING(LABEL), NAMES, put_optimizer},
    {1, 0, NO_NAMES, put_depth},
    {1, 0, NO_NAMES, put_recompute},
    {1, RING(THREAD), NO_NAMES, put_thread},
    {1, RING(DURATION), NO_NAMES, put_duration},
    {1, RING(DURATION), NO_NAMES, put_duration_ms},
    {1, OF_STEP, STEPS, put_time_offset},
    {1, 0, NO_NAMES, put_weight},
    {1, 0, NO_NAMES, put_unknown},
    {1, RING(ALLOCATED), NO_NAMES, put_allocated},
    {1, RING(MAX_ALLOCATED), NO_NAMES, put_max_allocated},
    {1, RING(CACHED), NO_NAMES, put_cached},
    {1, RING(MAX_CACHED), NO_NAMES, put_max_cached},
    {1, RING(ALLOCATED_DELTA), NO_NAMES, put_allocated_delta},
    {1, RING(MAX_ALLOCATED_DELTA), NO_NAMES, put_max_allocated_delta},
    {1, 0, NO_NAMES, put_resolution},
};
_Static_assert(sizeof parts / sizeof *parts <= PARTS_MAX, "room for each part");

static bool wants(const struct prb_rows *rows, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (prb_rows_wants(rows, columns[i].name))
            return true;
    return false;
}

/* Which parts are asked for; returns the columns of the ring that they are made from. */
static uint64_t choose(struct filling *filling, enum names *names_out)
{
    uint64_t needs = RING(BEGIN) | RING(PLACE);
    size_t column = 0, skipped = 0;
    *names_out = NO_NAMES;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; column += parts[i++].columns) {
        if (!wants(filling->rows, column, parts[i].columns)) {
            skipped += parts[i].columns;
            continue;
        }
        filling->parts[filling->count].skipped = skipped;
        filling->parts[filling->count++].put = parts[i].put;
        skipped = 0;
        needs |= parts[i].needs;
        if (parts[i].names > *names_out)
            *names_out = parts[i].names;
    }
    return needs;
}

static bool put_row(void *context, const struct prb_ring_value *values, int64_t process,
                    enum prb_store_resolution resolution)
{
    const struct filling *filling = context;
    const struct call call = {.values = values,
                              .resolution = resolution,
                              .stage = PRB_TRACE_STAGE(values[PRB_TRACE_PLACE].integer)};
    (void)process;
    if (call.stage >= PRB_TRACE_STAGES || call.stage == PRB_TRACE_COLLECTIVE)
        return true;
    prb_row_begin(filling->rows);
    for (size_t i = 0; i < filling->count; i++) {
        if (filling->parts[i].skipped)
            prb_row_skip(filling->rows, filling->parts[i].skipped);
        filling->parts[i].put(filling, &call);
    }
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct filling filling = {.rows = rows};
    enum names names;
    const uint64_t needs = choose(&filling, &names);
    const bool memory = needs & OF_MEMORY;
    bool good =
        (names == NO_NAMES || prb_torch_names_read(rows, names == STEPS, &filling.names, err)) &&
        prb_recorded_each_of(rows, PRB_TRACE_RING,
                             memory ? PRB_TRACE_MEMORY_COLUMNS : PRB_TRACE_COLUMNS,
                             memory ? PRB_HISTORY_PART : PRB_HISTORY_WHOLE, "timestamp", needs,
                             put_row, &filling, err);
    prb_torch_names_deinit(&filling.names);
    good = good && prb_recorded_same(rows, PRB_TRACE_RING, err);
    prb_note_unrecorded(rows, false);
    return good;
}

const struct prb_table prb_table_python_torch_trace = {
    .schema = "python",
    .name = "torch_trace",
    .doc = "calls of PyTorch modules and phases of steps, recorded while probing.torch.profiling "
           "is on",
    .columns = columns,
    .recorded = true,
    .timed = true,
    .fill = fill,
};
