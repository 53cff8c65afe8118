/*
 * python.training_logs of a program that does not log itself: the watched variables loss, epoch, step,
 * lr, grad_norm and acc… of each step, as one row.
 */
#include "table/shared/training_logs.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/json_text.h"
#include "base/real.h"
#include "table/recorded/each.h"
#include "table/shared/thread_columns.h"
#include "table/shared/torch_names.h"
#include "training/variable_rows.h"

enum metric { EPOCH, STEP, LOSS, LR, GRAD_NORM, ACC, ACC1, ACC5, ACCURACY, METRICS };
static const char *const metric_names[METRICS] = {"epoch", "step", "loss", "lr",      "grad_norm",
                                                  "acc",   "acc1", "acc5", "accuracy"};

static const struct prb_column columns[] = {
    {"time", PRB_REAL, "s", "end of the step, since the epoch"},
    {"epoch", PRB_REAL, "",
     "a watched epoch, else the local of that name, else the framework's whole ones"},
    {"step", PRB_INTEGER, "", "a watched step, else global_step, else local_step"},
    {"loss", PRB_REAL, "", "the watched variable of that name"},
    {"lr", PRB_REAL, "", "a watched lr, else that of the optimizer with the most parameters"},
    {"grad_norm", PRB_REAL, "", "the same"},
    {"acc", PRB_REAL, "", "the same"},
    {"acc1", PRB_REAL, "", "the same"},
    {"acc5", PRB_REAL, "", "the same"},
    {"accuracy", PRB_REAL, "", "the same"},
    {"other", PRB_TEXT, "", "JSON: other watched variables whose names begin with acc"},
    {"timestamp", PRB_REAL, "s", "the same as time"},
    {"pid", PRB_INTEGER, "id", "of the process"},
    {"rank", PRB_INTEGER, "id", "of the process in its job; NULL: it has none", .of_rank = true},
    {"local_step", PRB_INTEGER, "", "steps since recording began"},
    {0},
};

struct filling {
    struct prb_rows *rows;
    struct prb_torch_names names;
    bool open; /* a row is being gathered */
    double time;
    int64_t step, thread; /* step -1: outside of all */
    double values[METRICS];
    struct prb_buf other;
};

static void put_real(struct prb_rows *rows, double value)
{
    if (isnan(value))
        prb_row_null(rows);
    else
        prb_row_real(rows, value);
}

static void put_whole(struct prb_rows *rows, double value)
{
    if (value == prb_floor(value) && fabs(value) < 9e15)
        prb_row_int(rows, (int64_t)value);
    else
        put_real(rows, value);
}

static void put_row(struct filling *filling)
{
    struct prb_rows *rows = filling->rows;
    int64_t arming = PRB_TRACE_HIGH(filling->thread), step = filling->step;
    if (!filling->open)
        return;
    filling->open = false;
    prb_row_begin(rows);
    prb_row_real(rows, filling->time);
    put_whole(rows, filling->values[EPOCH]);
    if (!isnan(filling->values[STEP]))
        put_whole(rows, filling->values[STEP]);
    else if (step >= 0)
        prb_row_int(rows, prb_torch_global_step(&filling->names, arming, step, step));
    else
        prb_row_null(rows);
    for (int i = LOSS; i < METRICS; i++)
        put_real(rows, filling->values[i]);
    if (filling->other.len) {
        prb_buf_adds(&filling->other, "}");
        prb_row_textn(rows, filling->other.data, filling->other.len);
    } else {
        prb_row_null(rows);
    }
    prb_row_real(rows, filling->time);
    prb_row_int_unless(rows, filling->names.pid, -1);
    prb_row_int_unless(rows, filling->names.rank, -1);
    prb_row_int_unless(rows, step, -1);
}

static void begin(struct filling *filling, double time, int64_t step, int64_t thread)
{
    put_row(filling);
    filling->other.len = 0;
    filling->time = time;
    filling->step = step;
    filling->thread = thread;
    for (int i = 0; i < METRICS; i++)
        filling->values[i] = NAN;
}

/* "loss" of "out['loss']" and of "self.loss": what it ends with. */
static size_t last_word(const char *text, size_t len, const char **word_out)
{
    size_t end = len;
    while (end && !isalnum((unsigned char)text[end - 1]) && text[end - 1] != '_')
        end--;
    size_t begin = end;
    while (begin && (isalnum((unsigned char)text[begin - 1]) || text[begin - 1] == '_'))
        begin--;
    *word_out = text + begin;
    return end - begin;
}

static void add_other(struct filling *filling, const char *name, size_t len, double number)
{
    if (!isfinite(number))
        return;
    prb_buf_adds(&filling->other, filling->other.len ? "," : "{");
    prb_json_add_text(&filling->other, name, len);
    prb_buf_addf(&filling->other, ":%.17g", number);
}

static bool take(void *context, const struct prb_ring_value *values)
{
    struct filling *filling = context;
    const struct prb_ring_value *name = &values[PRB_VARIABLES_NAME];
    const char *word;
    if (name->null || values[PRB_VARIABLES_NUMBER].null)
        return true;
    size_t len = last_word(name->text, name->len, &word);
    int metric = 0;
    while (metric < METRICS && (strlen(metric_names[metric]) != len ||
                                strncasecmp(metric_names[metric], word, len) != 0))
        metric++;
    /* Read along, from an object of the framework: whatever it is called there, it is the epoch. */
    bool of_framework = !values[PRB_VARIABLES_ASKED].integer && len != name->len;
    metric = of_framework ? EPOCH : metric;
    if (metric == METRICS && (len < 3 || strncasecmp(word, "acc", 3) != 0))
        return true;
    int64_t step = values[PRB_VARIABLES_STEP].null ? -1 : values[PRB_VARIABLES_STEP].integer;
    int64_t thread = values[PRB_VARIABLES_THREAD].integer;
    double time = values[PRB_VARIABLES_TIME].real, number = values[PRB_VARIABLES_NUMBER].real;
    /* transformers' TrainerState counts parts of an epoch, too; what the user asked for stays. */
    if (of_framework)
        number = prb_floor(number);
    if (!filling->open || step != filling->step || time != filling->time ||
        PRB_TRACE_HIGH(thread) != PRB_TRACE_HIGH(filling->thread))
        begin(filling, time, step, thread);
    filling->open = true;
    if (metric == METRICS)
        add_other(filling, word, len, number);
    else if (isnan(filling->values[metric])) /* the first one that was asked for */
        filling->values[metric] = number;
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct filling filling = {.rows = rows};
    bool good =
        prb_torch_names_read(rows, false, &filling.names, err) &&
        prb_recorded_each(rows, PRB_VARIABLES_RING, PRB_VARIABLES_COLUMNS, take, &filling, err);
    if (good)
        put_row(&filling);
    prb_torch_names_deinit(&filling.names);
    prb_buf_deinit(&filling.other);
    return good;
}

const struct prb_table prb_training_logs_watched = {
    .schema = "python",
    .name = "training_logs",
    .doc = "loss, epoch, learning rate and accuracy of each step: what the program logs "
           "(probing.log), else what probing.torch.exprs watches",
    .columns = columns,
    .recorded = true,
    .fill = fill,
};
