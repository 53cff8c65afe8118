/*
 * python.variables: what the probe recorded of the variables that probing.torch.exprs names; and
 * python.variables('loss@train', seconds): variables of functions, watched from outside.
 */
#include <math.h>
#include <string.h>

#include "inspect/heap.h"
#include "table/recorded/each.h"
#include "table/shared/duration.h"
#include "table/shared/moment_columns.h"
#include "table/shared/torch_names.h"
#include "table/shared/unrecorded.h"
#include "table/shared/variable_text.h"
#include "training/variable_rows.h"
#include "training/variables.h"

#define SECONDS 1.0
#define RATE 10.0
#define RATE_MAX 100.0
#define FUNCTIONS_SHOWN 8
#define WHY_LONGEST 256

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "when it was read, since the epoch"},
    {"pid", PRB_INTEGER, "id", "of the process"},
    {"rank", PRB_INTEGER, "id", "of the process in its job; NULL: it has none", .of_rank = true},
    {"step", PRB_INTEGER, "",
     "recorded: global_step, else local_step; read from outside: the program's own counter at that "
     "moment (clock); NULL: none counts"},
    PRB_TORCH_STEP_COLUMNS,
    {"micro_step", PRB_INTEGER, "", "outermost backwards of the step that had ended"},
    {"func", PRB_TEXT, "", "the function"},
    {"name", PRB_TEXT, "", "the variable, as it was written"},
    {"value", PRB_TEXT, "",
     "what repr() prints, cut at 256 characters; recorded: of numbers and str alone"},
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

static void add_row(struct prb_rows *rows, int rank, const struct prb_watched *watched,
                    const struct prb_variable_values *values,
                    const struct prb_variable_value *value)
{
    prb_row_begin(rows);
    prb_row_real(rows, value->at);
    prb_row_int(rows, prb_target_info(prb_rows_target(rows))->pid);
    prb_row_int_unless(rows, rank, -1);
    prb_row_int_unless(rows, value->step, -1);
    prb_row_null(rows); /* local_step, global_step, micro_step: of recorded rows */
    prb_row_null(rows);
    prb_row_null(rows);
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

/* ---- what the probe recorded ---- */

struct recorded {
    struct prb_rows *rows;
    struct prb_torch_names names;
    struct begun { /* what is watched since the last change */
        char function[PRB_WATCHED_TEXT_MAX], name[PRB_WATCHED_TEXT_MAX];
        bool seen, bound, valued; /* a call of the function; the name in it; a value of that */
        char why[WHY_LONGEST];    /* it has no value, at last; "": it is not told */
    } begun[PRB_WATCHED_MAX];
    size_t begun_count, count;
    double begun_at;
};

static bool is_same(const char *text, const struct prb_ring_value *value)
{
    return !value->null && strlen(text) == value->len && memcmp(text, value->text, value->len) == 0;
}

static struct begun *begun_of(struct recorded *recorded, const struct prb_ring_value *function,
                              const struct prb_ring_value *name)
{
    for (size_t i = 0; i < recorded->begun_count; i++)
        if (is_same(recorded->begun[i].function, function) &&
            is_same(recorded->begun[i].name, name))
            return &recorded->begun[i];
    return NULL;
}

/* A row that says what is watched from now on. */
static void begins(struct recorded *recorded, const struct prb_ring_value *values)
{
    const struct prb_ring_value *function = &values[PRB_VARIABLES_FUNC];
    const struct prb_ring_value *name = &values[PRB_VARIABLES_NAME];
    if (values[PRB_VARIABLES_TIME].real > recorded->begun_at)
        recorded->begun_count = 0;
    recorded->begun_at = values[PRB_VARIABLES_TIME].real;
    if (function->null || function->len >= PRB_WATCHED_TEXT_MAX || name->null ||
        name->len >= PRB_WATCHED_TEXT_MAX || begun_of(recorded, function, name) ||
        recorded->begun_count == PRB_WATCHED_MAX)
        return;
    struct begun *one = &recorded->begun[recorded->begun_count++];
    *one = (struct begun){0};
    memcpy(one->function, function->text, function->len);
    memcpy(one->name, name->text, name->len);
}

static void take_value(struct begun *begun, const struct prb_ring_value *values)
{
    const struct prb_ring_value *text = &values[PRB_VARIABLES_VALUE];
    const char *why = prb_variable_why(values);
    begun->seen = true;
    begun->bound |= !values[PRB_VARIABLES_TYPE].null;
    begun->valued |= !values[PRB_VARIABLES_NUMBER].null || (!text->null && !why) ||
                     is_same("NoneType", &values[PRB_VARIABLES_TYPE]);
    if (why)
        snprintf(begun->why, sizeof begun->why, "%.*s", (int)(text->len - 1), why);
}

/* A row of a variable, of a function that was named or of whoever called. */
static void comes(struct recorded *recorded, const struct prb_ring_value *values)
{
    static const struct prb_ring_value nobody = {.text = ""};
    const struct prb_ring_value *name = &values[PRB_VARIABLES_NAME];
    for (int i = 0; i < 2; i++) {
        struct begun *begun = begun_of(recorded, i ? &nobody : &values[PRB_VARIABLES_FUNC], name);
        if (begun)
            take_value(begun, values);
    }
}

static void put_text(struct prb_rows *rows, const struct prb_ring_value *value)
{
    if (value->null)
        prb_row_null(rows);
    else
        prb_row_textn(rows, value->text, value->len);
}

static void put_steps(const struct recorded *recorded, const struct prb_ring_value *values)
{
    struct prb_rows *rows = recorded->rows;
    int64_t arming = PRB_TRACE_HIGH(values[PRB_VARIABLES_THREAD].integer);
    if (values[PRB_VARIABLES_STEP].null) {
        for (int i = 0; i < 4; i++)
            prb_row_null(rows);
        return;
    }
    int64_t step = values[PRB_VARIABLES_STEP].integer;
    prb_row_int(rows, prb_torch_global_step(&recorded->names, arming, step, step));
    prb_row_torch_steps(rows, &recorded->names, arming, step);
    prb_row_int(rows, values[PRB_VARIABLES_MICRO_STEP].integer);
}

static bool put_recorded(void *context, const struct prb_ring_value *values)
{
    struct recorded *recorded = context;
    struct prb_rows *rows = recorded->rows;
    if (!values[PRB_VARIABLES_ASKED].integer)
        return true;
    recorded->count++;
    if (values[PRB_VARIABLES_STEP].null && !values[PRB_VARIABLES_MICRO_STEP].null) {
        begins(recorded, values);
        return true;
    }
    comes(recorded, values);
    prb_row_begin(rows);
    prb_row_real(rows, values[PRB_VARIABLES_TIME].real);
    prb_row_int_unless(rows, recorded->names.pid, -1);
    prb_row_int_unless(rows, recorded->names.rank, -1);
    put_steps(recorded, values);
    put_text(rows, &values[PRB_VARIABLES_FUNC]);
    put_text(rows, &values[PRB_VARIABLES_NAME]);
    prb_row_variable_text(rows, values);
    if (values[PRB_VARIABLES_NUMBER].null)
        prb_row_null(rows);
    else
        prb_row_real(rows, values[PRB_VARIABLES_NUMBER].real);
    put_text(rows, &values[PRB_VARIABLES_TYPE]);
    prb_row_int_unless(rows, PRB_TRACE_LOW(values[PRB_VARIABLES_THREAD].integer), 0);
    prb_row_null(rows);
    return true;
}

/* Where the main thread is, functions outermost first; nothing of a process that is gone. */
static void add_place(struct prb_rows *rows, struct prb_buf *out)
{
    if (!prb_rows_target(rows))
        return;
    const struct prb_stacks *stacks = prb_rows_stacks(rows, NULL);
    size_t shown = 0;
    prb_buf_addf(out, " yet; the main thread is in: ");
    for (size_t i = 0; stacks && i < stacks->thread_count && !shown; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        for (size_t f = thread->frame_count; f-- > 0 && shown < FUNCTIONS_SHOWN;)
            if (thread->frames[f].name[0] != '<')
                prb_buf_addf(out, "%s%s", shown++ ? ", " : "", thread->frames[f].name);
    }
    if (!shown)
        prb_buf_addf(out, "nothing");
}

/* What is watched and never had a value; of a function that was not seen, once. */
static void note_missing(struct recorded *recorded)
{
    PRB_AUTO(prb_buf) struct prb_buf place = {0};
    for (size_t i = 0; i < recorded->begun_count; i++) {
        const struct begun *one = &recorded->begun[i];
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again |= !one->seen && strcmp(recorded->begun[j].function, one->function) == 0;
        if (one->valued || again || (one->bound && !one->why[0]))
            continue;
        if (one->why[0]) {
            prb_rows_warn(recorded->rows, "%s%s%s has no value: %s", one->name,
                          one->function[0] ? "@" : "", one->function, one->why);
            continue;
        }
        if (!place.len)
            add_place(recorded->rows, &place);
        const char *where = prb_buf_ok(&place) && place.len ? place.data : "";
        if (!one->function[0])
            prb_rows_warn(recorded->rows,
                          "no function that calls backward or the optimizer has had a %s%s",
                          one->name, where);
        else if (one->seen)
            prb_rows_warn(recorded->rows,
                          "no call of %s has had %s when it is read: at its return, at the end of "
                          "the backward, at the end of the step (is it deleted before?)",
                          one->function, one->name);
        else
            prb_rows_warn(recorded->rows, "no call of %s has been seen%s", one->function, where);
    }
}

static bool recorded_rows(struct prb_rows *rows, struct prb_error *err)
{
    struct recorded recorded = {.rows = rows};
    bool good = prb_torch_names_read(rows, false, &recorded.names, err) &&
                prb_recorded_each(rows, PRB_VARIABLES_RING, PRB_VARIABLES_COLUMNS, put_recorded,
                                  &recorded, err);
    prb_torch_names_deinit(&recorded.names);
    if (good)
        note_missing(&recorded);
    char command[PRB_COMMAND_MAX];
    if (good && !recorded.count)
        prb_rows_warn(rows,
                      "nothing is recorded: `%s config probing.torch.exprs=loss@train` watches the "
                      "variable loss of a function train, python.variables('loss@train', 5) from "
                      "outside for 5 s",
                      prb_rows_command(rows, command));
    return good;
}

/* ---- what is read from outside ---- */

static bool watch(struct prb_rows *rows, const struct prb_value *exprs, struct prb_error *err)
{
    double seconds = SECONDS, rate = RATE;
    struct prb_watched watched[PRB_WATCHED_MAX];
    size_t count = 0;
    if (!prb_rows_target(rows))
        return prb_fail(err, PRB_USAGE, "variables are watched in a process that runs");
    if (!prb_watched_parse(exprs->text, watched, &count, err) ||
        !prb_rows_seconds(rows, &seconds, err) ||
        !prb_rows_number(rows, "rate", RATE_MAX, &rate, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!watched[i].function[0]) {
            prb_fail(err, PRB_QUERY, "\"%s@\" says no function", watched[i].text);
            return prb_error_remedy(err, "from outside it must be named, as in '%s@train'",
                                    watched[i].text);
        }
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
    int rank = prb_process_rank((pid_t)prb_target_info(prb_rows_target(rows))->pid);
    for (size_t i = 0; i < values.count; i++)
        add_row(rows, rank, watched, &values, &values.items[i]);
    note(rows, watched, count, &values);
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_value *exprs = prb_rows_argument(rows, "exprs");
    return exprs && exprs->type == PRB_TEXT ? watch(rows, exprs, err) : recorded_rows(rows, err);
}

const struct prb_table prb_table_python_variables = {
    .schema = "python",
    .name = "variables",
    .doc = "variables of functions over time: as probing.torch.exprs names them, recorded; "
           "variables('loss@train', seconds) reads them as the query runs, and nothing is loaded",
    .columns = columns,
    .recorded = true,
    .fill = fill,
};
