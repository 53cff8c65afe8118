/* GET /api/v1/p/{}/tensor/{address}: a tensor or array: what it is, values, statistics. */
#include <math.h>
#include <string.h>

#include "format/json.h"
#include "serve/work/targets.h"

#define ELEMENTS_MAX 10000
#define ELEMENTS 100

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *sizes(const int64_t *values, unsigned count)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *describe(const struct prb_tensor *tensor)
{
    return json_pack("{s:s,s:o,s:o,s:I,s:s,s:s,s:s,s:b,s:b,s:I,s:o}", "kind",
                     tensor->torch ? "torch" : "numpy", "shape", sizes(tensor->shape, tensor->dims),
                     "stride", sizes(tensor->stride, tensor->dims), "elements",
                     (json_int_t)tensor->numel, "dtype", tensor->dtype, "device", tensor->device,
                     "layout", tensor->layout, "contiguous", tensor->contiguous, "requires_grad",
                     tensor->requires_grad, "version", (json_int_t)tensor->version, "unreadable",
                     *tensor->unreadable ? prb_json_text(tensor->unreadable) : json_null());
}

static json_t *statistics_json(const struct prb_statistics *seen)
{
    json_t *bins = sizes(seen->histogram, seen->bins);
    return json_pack("{s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "count",
                     (json_int_t)seen->count, "nan", (json_int_t)seen->nan, "inf",
                     (json_int_t)seen->inf, "zero", (json_int_t)seen->zero, "min",
                     number(seen->min), "max", number(seen->max), "mean", number(seen->mean), "std",
                     number(seen->std), "norm", number(seen->norm), "low", number(seen->low),
                     "high", number(seen->high), "histogram", bins);
}

struct wanted {
    bool statistics;
    double bins, count;
    const char *slice;
};

static bool look(struct prb_target *target, const struct prb_tensor *tensor,
                 const struct wanted *wanted, json_t *out, struct prb_error *err)
{
    const struct prb_statistics_options options = {.bins = (unsigned)wanted->bins};
    PRB_AUTO_FREE struct prb_statistics *seen = calloc(1, sizeof *seen);
    if (*tensor->unreadable)
        return true;
    if (wanted->count > 0) {
        PRB_AUTO_FREE char *text = prb_tensor_text(target, tensor, (size_t)wanted->count, err);
        if (!text)
            return false;
        json_object_set_new(out, "values", prb_json_text(text));
    }
    if (!wanted->statistics)
        return true;
    if (!seen || !prb_tensor_statistics(target, tensor, &options, seen, err))
        return seen ? false : prb_nomem(err);
    json_object_set_new(out, "statistics", statistics_json(seen));
    return true;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    struct wanted wanted = {.count = ELEMENTS, .slice = prb_question_value(job->question, "slice")};
    struct prb_tensor whole, part;
    prb_addr address;
    if (!prb_question_flag(job->question, "statistics", &wanted.statistics, err) ||
        !prb_question_number(job->question, "bins", 0, PRB_HISTOGRAM_MAX, &wanted.bins, err) ||
        !prb_question_number(job->question, "count", 0, ELEMENTS_MAX, &wanted.count, err) ||
        !prb_question_address(job, &address, err))
        return false;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held || !prb_tensor_take(prb_serve_target_open(held), address, &whole, err))
        return false;
    if (!wanted.slice)
        part = whole;
    else if (!prb_tensor_slice(&whole, wanted.slice, &part, err))
        return false;
    json_t *out = describe(&part);
    if (look(prb_serve_target_open(held), &part, &wanted, out, err))
        return prb_answer_json(job->answer, out, err);
    json_decref(out);
    return false;
}

const struct prb_route prb_route_tensor = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/tensor/{}",
    .summary = "a tensor or array by its address: shape, values, statistics",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "slice count statistics bins",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
