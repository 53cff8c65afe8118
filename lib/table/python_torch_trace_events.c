/* python.torch_trace_events: the calls of python.torch_trace as two events each, as they began and ended. */
#include "table/recorded/each.h"
#include "table/shared/thread_columns.h"
#include "table/shared/torch_names.h"
#include "table/shared/unrecorded.h"

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "of the event, since the epoch"},
    PRB_TORCH_PROCESS_COLUMNS,
    PRB_TORCH_STEP_COLUMNS,
    {"micro_step", PRB_INTEGER, "", "outermost backwards of the step before it"},
    {"seq", PRB_INTEGER, "", "of the call, as in python.torch_trace"},
    {"module", PRB_TEXT, "", "as in torch.modules, else the class or label"},
    {"stage", PRB_TEXT, "", "\"pre forward\", \"post forward\", and so on"},
    {"duration", PRB_REAL, "s", "of the call; 0 of its begin"},
    {"thread", PRB_INTEGER, "id", "native id"},
    {0},
};

static const char *const stages[PRB_TRACE_STAGES][2] = {
    [PRB_TRACE_FORWARD] = {"pre forward", "post forward"},
    [PRB_TRACE_BACKWARD] = {"pre backward", "post backward"},
    [PRB_TRACE_OPTIMIZER] = {"pre step", "post step"},
    [PRB_TRACE_ZERO_GRAD] = {"pre zero_grad", "post zero_grad"},
    [PRB_TRACE_DATA] = {"pre data", "post data"},
    [PRB_TRACE_SCOPE] = {"pre scope", "post scope"},
};

struct filling {
    struct prb_rows *rows;
    struct prb_torch_names names;
};

static void put_event(const struct filling *filling, const struct prb_ring_value *values, bool post)
{
    struct prb_rows *rows = filling->rows;
    const struct prb_torch_names *names = &filling->names;
    unsigned stage = PRB_TRACE_STAGE(values[PRB_TRACE_PLACE].integer);
    int64_t owner = values[PRB_TRACE_THREAD].integer, arming = PRB_TRACE_HIGH(owner);
    double duration = (double)values[PRB_TRACE_DURATION].integer * 1e-9;
    const struct prb_torch_name *module =
        stage == PRB_TRACE_FORWARD
            ? prb_torch_object_of(names, arming, values[PRB_TRACE_OBJECT].integer)
            : NULL;
    prb_row_begin(rows);
    prb_row_real(rows, values[PRB_TRACE_BEGIN].real + (post ? duration : 0));
    prb_row_torch_process(rows, names);
    prb_row_torch_steps(rows, names, arming, values[PRB_TRACE_STEP].integer);
    prb_row_int(rows, PRB_TRACE_HIGH(values[PRB_TRACE_ORDER].integer));
    prb_row_int(rows, PRB_TRACE_LOW(values[PRB_TRACE_ORDER].integer));
    prb_row_text(rows, module ? module->name
                              : prb_torch_label_of(names, values[PRB_TRACE_LABEL].integer));
    prb_row_text(rows, stages[stage][post]);
    prb_row_real(rows, post ? duration : 0);
    prb_row_int(rows, PRB_TRACE_LOW(owner));
}

static bool put_row(void *context, const struct prb_ring_value *values)
{
    unsigned stage = PRB_TRACE_STAGE(values[PRB_TRACE_PLACE].integer);
    if (stage >= PRB_TRACE_STAGES || stage == PRB_TRACE_COLLECTIVE)
        return true;
    put_event(context, values, false);
    put_event(context, values, true);
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct filling filling = {.rows = rows};
    bool good = prb_torch_names_read(rows, false, &filling.names, err) &&
                prb_recorded_each(rows, PRB_TRACE_RING, PRB_TRACE_COLUMNS, put_row, &filling, err);
    prb_torch_names_deinit(&filling.names);
    prb_note_unrecorded(rows, false);
    return good;
}

const struct prb_table prb_table_python_torch_trace_events = {
    .schema = "python",
    .name = "torch_trace_events",
    .doc = "python.torch_trace as two events a call, its begin and its end",
    .columns = columns,
    .recorded = true,
    .fill = fill,
};
