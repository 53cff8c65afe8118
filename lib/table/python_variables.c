/* python.variables('loss@train', seconds): variables of functions, watched from outside. */
#include <math.h>
#include <string.h>

#include "inspect/heap.h"
#include "table/shared/duration.h"
#include "table/shared/moment_columns.h"
#include "training/variables.h"

#define SECONDS 1.0
#define RATE 10.0
#define RATE_MAX 100.0

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "when it was read, since the epoch"},
    {"pid", PRB_INTEGER, "id", "of the process"},
    {"rank", PRB_INTEGER, "id", "of the process in its job; NULL: it has none"},
    {"step", PRB_INTEGER, "",
     "of the program's own counter at that moment (clock); NULL: none counts"},
    {"func", PRB_TEXT, "", "the function"},
    {"name", PRB_TEXT, "", "the variable, as it was written"},
    {"value", PRB_TEXT, "", "what repr() prints, cut at 256 characters"},
    {"number", PRB_REAL, "", "of an int, float or bool, or of a tensor with one element"},
    {"type", PRB_TEXT, "", "of the value"},
    {"thread", PRB_INTEGER, "id", "whose frame it is, as threading.get_native_id() says"},
    {"clock", PRB_TEXT, "", "the counter of steps, as in python.torch_phases"},
    {"exprs", PRB_TEXT, "",
     "argument: what to watch, as in 'loss@train,out[\"acc\"]@train,self.lr@Trainer.step'",
     .hidden = true},
    {"seconds", PRB_REAL, "s", "argument: for how long; 1 when not given", .hidden = true},
    {"rate", PRB_REAL, "1/s", "argument: readings a second, at most 100; 10 when not given",
     .hidden = true},
    {0},
};

PRB_DEFINE_AUTO_PTR(prb_heap, struct prb_heap, prb_heap_free)

static void add_row(struct prb_rows *rows, const struct prb_watched *watched,
                    const struct prb_variable_values *values,
                    const struct prb_variable_value *value)
{
    pid_t pid = (pid_t)prb_target_info(prb_rows_target(rows))->pid;
    prb_row_begin(rows);
    prb_row_real(rows, value->at);
    prb_row_int(rows, pid);
    prb_row_int_unless(rows, prb_process_rank(pid), -1);
    prb_row_int_unless(rows, value->step, -1);
    prb_row_text(rows, value->function);
    prb_row_text(rows, watched[value->watched].text);
    prb_row_text(rows, value->text);
    if (isnan(value->number))
        prb_row_null(rows);
    else
        prb_row_real(rows, value->number);
    prb_row_text(rows, value->type);
    prb_row_int_unless(rows, (int64_t)value->native_id, 0);
    prb_row_text(rows, values->clock);
}

static void note(struct prb_rows *rows, const struct prb_watched *watched, size_t count,
                 const struct prb_variable_values *values)
{
    for (size_t i = 0; i < count; i++) {
        if (!watched[i].frames)
            prb_rows_warn(rows, "no frame of %s was seen; the main thread is in: %s",
                          watched[i].function, values->functions ? values->functions : "nothing");
        else if (!watched[i].found)
            prb_rows_warn(rows, "%s has no %s that could be read meanwhile", watched[i].function,
                          watched[i].text);
    }
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_value *exprs = prb_rows_argument(rows, "exprs");
    double seconds = SECONDS, rate = RATE;
    struct prb_watched watched[PRB_WATCHED_MAX];
    size_t count = 0;
    if (!exprs || exprs->type != PRB_TEXT) {
        prb_rows_warn(rows, "nothing is watched: python.variables('loss@train', 5) watches the "
                            "variable loss of a function train for 5 s");
        return true;
    }
    if (!prb_watched_parse(exprs->text, watched, &count, err) ||
        !prb_rows_seconds(rows, &seconds, err) ||
        !prb_rows_number(rows, "rate", RATE_MAX, &rate, err))
        return false;
    bool wants_step = prb_rows_wants(rows, "step") || prb_rows_wants(rows, "clock");
    PRB_AUTO(prb_heap)
    struct prb_heap *heap = wants_step && prb_rows_stacks(rows, err)
                                ? prb_heap_take(prb_rows_target(rows), NULL)
                                : NULL;
    PRB_AUTO(prb_step_clock)
    struct prb_step_clock *clock = heap ? prb_step_clock_new(heap, NULL) : NULL;
    PRB_AUTO(prb_variable_values) struct prb_variable_values values = {0};
    if (!prb_variables_watch(prb_rows_target(rows), watched, count, seconds, rate, clock,
                             prb_rows_in_time, rows, &values, err))
        return false;
    for (size_t i = 0; i < values.count; i++)
        add_row(rows, watched, &values, &values.items[i]);
    note(rows, watched, count, &values);
    return true;
}

const struct prb_table prb_table_python_variables = {
    .schema = "python",
    .name = "variables",
    .doc = "variables of functions over time, which variables('loss@train', seconds) reads as the "
           "query runs; nothing is loaded",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
