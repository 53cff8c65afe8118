/* python.torch_trace: calls of modules and phases of steps, as the probe recorded them. */
#include <stdio.h>
#include <string.h>

#include "table/recorded/each.h"
#include "table/shared/thread_columns.h"
#include "table/shared/torch_names.h"

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
    {"gpu_ms", PRB_REAL, "ms", "on the GPU"},
    {"allocated", PRB_REAL, "MB", "of GPU memory"},
    {"max_allocated", PRB_REAL, "MB", "the most of it so far"},
    {"cached", PRB_REAL, "MB", "of GPU memory that PyTorch's allocator keeps"},
    {"max_cached", PRB_REAL, "MB", "the most of it so far"},
    {"allocated_delta", PRB_REAL, "MB", "by which allocated grew meanwhile"},
    {"max_allocated_delta", PRB_REAL, "MB", "by which max_allocated grew meanwhile"},
    {"resolution", PRB_TEXT, "",
     "raw: one call; minute, hour: the mean of its module's calls in it, weight says of how many"},
    {0},
};

static const char *const gpu_columns[] = {
    "gpu_ms",     "allocated",       "max_allocated",       "cached",
    "max_cached", "allocated_delta", "max_allocated_delta", NULL};
#define GPU_COLUMNS 7

static const char *const stages[PRB_TRACE_STAGES] = {
    [PRB_TRACE_FORWARD] = "forward",     [PRB_TRACE_BACKWARD] = "backward",
    [PRB_TRACE_OPTIMIZER] = "optimizer", [PRB_TRACE_ZERO_GRAD] = "zero_grad",
    [PRB_TRACE_DATA] = "data",           [PRB_TRACE_SCOPE] = "scope",
};

/* Columns that are made from the same things, which take most of a row's time. */
enum group { PROCESS, STEPS, ENDED, MODULE, OPERATION, OPTIMIZER, GROUPS };
static const struct {
    const char *columns[5];
    size_t side_by_side; /* of them */
} groups[GROUPS] = {
    [PROCESS] = {{"pid", "rank", "world_size", "role"}, 4},
    [STEPS] = {{"local_step", "global_step"}, 2},
    [ENDED] = {{"micro_batches", "time_offset"}, 1},
    [MODULE] = {{"module", "root"}, 2},
    [OPERATION] = {{"operation_name"}, 1},
    [OPTIMIZER] = {{"optimizer"}, 1},
};

struct filling {
    struct prb_rows *rows;
    struct prb_torch_names names;
    bool wants[GROUPS], gpu;
};

static bool wants_any(const struct prb_rows *rows, const char *const *names)
{
    while (*names && !prb_rows_wants(rows, *names))
        names++;
    return *names;
}

/* Columns of the ring that the asked ones are made from. */
static uint64_t ring_columns(const struct prb_rows *rows)
{
    static const struct {
        unsigned column;
        const char *makes[10];
    } made[] = {
        {PRB_TRACE_DURATION, {"duration", "duration_ms"}},
        {PRB_TRACE_OBJECT, {"module", "root", "optimizer"}},
        {PRB_TRACE_LABEL, {"operation_name", "optimizer"}},
        {PRB_TRACE_STEP, {"local_step", "global_step", "micro_batches", "time_offset"}},
        {PRB_TRACE_ORDER, {"micro_step", "seq"}},
        {PRB_TRACE_THREAD,
         {"thread", "module", "root", "optimizer", "local_step", "global_step", "micro_batches",
          "time_offset"}},
    };
    uint64_t wanted = UINT64_C(1) << PRB_TRACE_BEGIN | UINT64_C(1) << PRB_TRACE_PLACE;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (wants_any(rows, made[i].makes))
            wanted |= UINT64_C(1) << made[i].column;
    return wanted;
}

static void put_operation(struct prb_rows *rows, unsigned stage, const char *label,
                          const char *class_name)
{
    char text[192];
    if (stage == PRB_TRACE_BACKWARD)
        class_name = "Tensor";
    if (stage == PRB_TRACE_SCOPE || !class_name) {
        prb_row_text(rows, label);
        return;
    }
    snprintf(text, sizeof text, "%s.%s", class_name, stages[stage]);
    prb_row_text(rows, text);
}

/* Whether the group's cells are made; else they are passed over. */
static bool takes(const struct filling *filling, enum group group)
{
    if (!filling->wants[group])
        prb_row_skip(filling->rows, groups[group].side_by_side);
    return filling->wants[group];
}

static void put_real_or_null(struct prb_rows *rows, bool known, double value)
{
    if (known)
        prb_row_real(rows, value);
    else
        prb_row_null(rows);
}

static void put_names(const struct filling *filling, const struct prb_ring_value *values,
                      unsigned stage)
{
    struct prb_rows *rows = filling->rows;
    const struct prb_torch_names *names = &filling->names;
    int64_t arming = PRB_TRACE_HIGH(values[PRB_TRACE_THREAD].integer);
    int64_t object = values[PRB_TRACE_OBJECT].integer;
    bool forward = stage == PRB_TRACE_FORWARD;
    bool updates = stage == PRB_TRACE_OPTIMIZER || stage == PRB_TRACE_ZERO_GRAD;
    const char *label = NULL, *class_name = NULL;
    char text[128];
    if (filling->wants[OPERATION] || filling->wants[OPTIMIZER]) {
        label = prb_torch_label_of(names, values[PRB_TRACE_LABEL].integer);
        class_name = forward ? label : prb_torch_class_of(label, text, sizeof text);
    }
    if (takes(filling, MODULE)) {
        const struct prb_torch_name *module =
            forward ? prb_torch_object_of(names, arming, object) : NULL;
        prb_row_text(rows, module ? module->name : NULL);
        prb_row_int_unless(rows, module ? module->number : 0, 0);
    }
    if (takes(filling, OPERATION))
        put_operation(rows, stage, label, class_name);
    prb_row_text(rows, stages[stage]);
    if (takes(filling, OPTIMIZER))
        prb_row_torch_optimizer(rows, names, arming, object, updates ? class_name : NULL);
}

static void put_gpu(const struct filling *filling)
{
    if (!filling->gpu)
        prb_row_skip(filling->rows, GPU_COLUMNS);
    for (int i = 0; filling->gpu && i < GPU_COLUMNS; i++)
        prb_row_null(filling->rows);
}

static bool put_row(void *context, const struct prb_ring_value *values, int64_t process,
                    enum prb_store_resolution resolution)
{
    const struct filling *filling = context;
    struct prb_rows *rows = filling->rows;
    const struct prb_torch_names *names = &filling->names;
    uint64_t place = (uint64_t)values[PRB_TRACE_PLACE].integer;
    int64_t owner = values[PRB_TRACE_THREAD].integer, arming = PRB_TRACE_HIGH(owner);
    int64_t step = values[PRB_TRACE_STEP].integer, order = values[PRB_TRACE_ORDER].integer;
    double begin = values[PRB_TRACE_BEGIN].real;
    double duration = (double)values[PRB_TRACE_DURATION].integer * 1e-9;
    unsigned stage = PRB_TRACE_STAGE(place);
    (void)process;
    if (stage >= PRB_TRACE_STAGES || stage == PRB_TRACE_COLLECTIVE)
        return true;
    const struct prb_torch_ended *ended =
        filling->wants[ENDED] ? prb_torch_step_at(names, arming, step) : NULL;
    prb_row_begin(rows);
    prb_row_real(rows, begin);
    if (takes(filling, PROCESS))
        prb_row_torch_process(rows, names);
    if (takes(filling, STEPS))
        prb_row_torch_steps(rows, names, arming, step);
    prb_row_int(rows, PRB_TRACE_HIGH(order));
    prb_row_int_unless(rows, ended ? ended->micro_steps : -1, -1);
    prb_row_int(rows, PRB_TRACE_LOW(order));
    put_names(filling, values, stage);
    prb_row_int(rows, PRB_TRACE_DEPTH(place));
    prb_row_int(rows, stage == PRB_TRACE_FORWARD ? (int64_t)PRB_TRACE_RECOMPUTE(place) : 0);
    prb_row_int(rows, PRB_TRACE_LOW(owner));
    prb_row_real(rows, duration);
    prb_row_real(rows, duration * 1e3);
    put_real_or_null(rows, ended && resolution == PRB_STORE_RAW, ended ? begin - ended->begin : 0);
    prb_row_int(rows, PRB_TRACE_WEIGHT(place));
    put_gpu(filling);
    prb_row_text(rows, prb_recorded_resolution(resolution));
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct filling filling = {.rows = rows};
    const uint64_t wanted = ring_columns(rows);
    for (int group = 0; group < GROUPS; group++)
        filling.wants[group] = wants_any(rows, groups[group].columns);
    filling.gpu = wants_any(rows, gpu_columns);
    bool good = prb_torch_names_read(rows, filling.wants[ENDED], &filling.names, err) &&
                prb_recorded_each_of(rows, PRB_TRACE_RING, PRB_TRACE_COLUMNS, "timestamp", wanted,
                                     put_row, &filling, err);
    prb_torch_names_deinit(&filling.names);
    return good && prb_recorded_same(rows, PRB_TRACE_RING, err);
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
