/* python.torch_step_timing: one row for each step of training, as the probe recorded it. */
#include "table/recorded/each.h"
#include "table/shared/thread_columns.h"
#include "table/shared/torch_devices.h"
#include "table/shared/torch_names.h"
#include "table/shared/torch_shadow.h"
#include "table/shared/unrecorded.h"

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "when it ended, since the epoch"},
    PRB_TORCH_PROCESS_COLUMNS,
    PRB_TORCH_STEP_COLUMNS,
    {"micro_steps", PRB_INTEGER, "count", "outermost backwards in it"},
    {"step_duration_sec", PRB_REAL, "s", "from the end of the step before to its own"},
    {"data", PRB_REAL, "s", "of the CPU, waiting for batches"},
    {"forward", PRB_REAL, "s", "of the CPU, in modules"},
    {"backward", PRB_REAL, "s", "of the CPU"},
    {"optimizer", PRB_REAL, "s", "of the CPU"},
    {"comm_wait", PRB_REAL, "s", "of the CPU, in collectives that it waits for"},
    {"other", PRB_REAL, "s", "the rest"},
    {"gpu_forward", PRB_REAL, "s",
     "on the GPU, from its begin to its end; NULL: not measured (short steps, those that "
     "are not sampled, no CUDA)"},
    {"gpu_backward", PRB_REAL, "s", "the same"},
    {"gpu_optimizer", PRB_REAL, "s", "the same"},
    {"optimizer_class", PRB_TEXT, "", "of the optimizer that ended it"},
    {"updates", PRB_INTEGER, "count", "of all optimizers: runs of steps with no backward between"},
    {"sampled", PRB_INTEGER, "", "1: it has rows of modules in python.torch_trace"},
    {"sample_rate", PRB_REAL, "ratio", "part of the steps that has"},
    {"sample_mode", PRB_TEXT, "", "how steps are chosen"},
    {"is_shadow", PRB_INTEGER, "", "1: no call of a module was looked at, to compare with"},
    PRB_TORCH_SHADOW_COLUMNS,
    {"overhead", PRB_REAL, "ratio", "what recording cost: events by their measured cost"},
    {"events", PRB_INTEGER, "count", "calls and labels that were seen"},
    {"thread", PRB_INTEGER, "id", "native id of the thread that ended it"},
    {0},
};

struct filling {
    struct prb_rows *rows;
    struct prb_torch_names names;
    struct prb_torch_shadows shadows;
    struct prb_torch_devices devices;
};

static void put_phases(struct prb_rows *rows, const struct prb_ring_value *values)
{
    double rest = (double)values[PRB_TRACE_STEP_DURATION].integer * 1e-9;
    prb_row_real(rows, rest);
    for (int i = PRB_TRACE_STEP_DATA; i <= PRB_TRACE_STEP_COMM_WAIT; i++) {
        double spent = (double)values[i].integer * 1e-9;
        prb_row_real(rows, spent);
        rest -= spent;
    }
    prb_row_real(rows, rest < 0 ? 0 : rest);
}

static bool put_row(void *context, const struct prb_ring_value *values, int64_t process,
                    enum prb_store_resolution resolution)
{
    (void)process, (void)resolution;
    const struct filling *filling = context;
    struct prb_rows *rows = filling->rows;
    const struct prb_torch_names *names = &filling->names;
    int64_t arming = PRB_TRACE_HIGH(values[PRB_TRACE_STEP_THREAD].integer);
    int64_t rate = values[PRB_TRACE_STEP_RATE].integer, weight = PRB_TRACE_LOW(rate);
    int64_t bits = PRB_TRACE_HIGH(rate);
    int64_t counts = values[PRB_TRACE_STEP_COUNTS].integer;
    char text[128];
    prb_row_begin(rows);
    prb_row_real(rows, values[PRB_TRACE_STEP_END].real);
    prb_row_torch_process(rows, names);
    prb_row_torch_steps(rows, names, arming, values[PRB_TRACE_STEP_STEP].integer);
    prb_row_int(rows, PRB_TRACE_LOW(counts));
    put_phases(rows, values);
    prb_row_torch_device(rows, &filling->devices, arming, values[PRB_TRACE_STEP_STEP].integer);
    prb_row_text(rows,
                 prb_torch_class_of(prb_torch_label_of(names, values[PRB_TRACE_STEP_LABEL].integer),
                                    text, sizeof text));
    prb_row_int(rows, PRB_TRACE_HIGH(counts));
    prb_row_int(rows, (bits & PRB_TRACE_SAMPLED) != 0);
    prb_row_real(rows, weight ? 1.0 / (double)weight : 0);
    prb_row_text(rows, "step");
    prb_row_int(rows, (bits & PRB_TRACE_SHADOW) != 0);
    prb_row_torch_shadow(rows, &filling->shadows, arming);
    prb_row_real(rows, values[PRB_TRACE_STEP_OVERHEAD].real);
    prb_row_int(rows, values[PRB_TRACE_STEP_EVENTS].integer);
    prb_row_int(rows, PRB_TRACE_LOW(values[PRB_TRACE_STEP_THREAD].integer));
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct filling filling = {.rows = rows};
    bool shadows = prb_rows_wants(rows, "shadow_normal") ||
                   prb_rows_wants(rows, "shadow_baseline") || prb_rows_wants(rows, "shadow_low") ||
                   prb_rows_wants(rows, "shadow_high");
    bool devices = prb_rows_wants(rows, "gpu_forward") || prb_rows_wants(rows, "gpu_backward") ||
                   prb_rows_wants(rows, "gpu_optimizer");
    bool good =
        prb_torch_names_read(rows, false, &filling.names, err) &&
        (!devices || prb_torch_devices_read(rows, &filling.devices, err)) &&
        (!shadows || prb_torch_shadows_read(rows, &filling.shadows, err)) &&
        prb_recorded_each_of(rows, PRB_TRACE_STEPS_RING, PRB_TRACE_STEPS_COLUMNS, PRB_HISTORY_WHOLE,
                             "timestamp", UINT64_MAX, put_row, &filling, err);
    prb_torch_names_deinit(&filling.names);
    prb_torch_shadows_deinit(&filling.shadows);
    prb_torch_devices_deinit(&filling.devices);
    good = good && prb_recorded_same(rows, PRB_TRACE_STEPS_RING, err);
    prb_note_unrecorded(rows, false);
    return good;
}

const struct prb_table prb_table_python_torch_step_timing = {
    .schema = "python",
    .name = "torch_step_timing",
    .doc = "one row for each step of training, recorded while probing.torch.profiling is on",
    .columns = columns,
    .recorded = true,
    .timed = true,
    .fill = fill,
};
