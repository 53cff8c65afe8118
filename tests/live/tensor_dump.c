/* Prints what the library tells of tensors: TARGET, then lines "ADDRESS [SUBSCRIPT]" on standard
 * input; a line of JSON for each.  Uses probing.h only. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probing.h"

static void set_array(json_t *out, const char *key, const int64_t *numbers, unsigned count)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, json_integer(numbers[i]));
    json_object_set_new(out, key, list);
}

static void set_real(json_t *out, const char *key, double value)
{
    json_object_set_new(out, key,
                        isnan(value)   ? json_null()
                        : isinf(value) ? json_string(value > 0 ? "inf" : "-inf")
                                       : json_real(value));
}

static json_t *statistics_json(struct prb_target *target, const struct prb_tensor *tensor)
{
    static const struct prb_statistics_options options = {.bins = 8};
    struct prb_statistics made;
    struct prb_error err = {0};
    json_t *out = json_object();
    if (!prb_tensor_statistics(target, tensor, &options, &made, &err)) {
        json_object_set_new(out, "error", json_string(err.text));
        return out;
    }
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"count", made.count}, {"nan", made.nan}, {"inf", made.inf}, {"zero", made.zero}};
    for (size_t i = 0; i < 4; i++)
        json_object_set_new(out, counts[i].key, json_integer(counts[i].value));
    const struct {
        const char *key;
        double value;
    } reals[] = {{"min", made.min}, {"max", made.max},   {"mean", made.mean},
                 {"std", made.std}, {"norm", made.norm}, {"mean_imag", made.mean_imag},
                 {"low", made.low}, {"high", made.high}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        set_real(out, reals[i].key, reals[i].value);
    set_array(out, "histogram", made.histogram, made.bins);
    return out;
}

static json_t *real_json(double value)
{
    return isnan(value)   ? json_string("nan")
           : isinf(value) ? json_string(value > 0 ? "inf" : "-inf")
                          : json_real(value);
}

static json_t *element_json(const struct prb_element *element)
{
    switch (element->kind) {
    case PRB_ELEMENT_BOOL:
        return json_boolean(element->integer);
    case PRB_ELEMENT_INT:
        return json_integer(element->integer);
    case PRB_ELEMENT_UINT: /* no more than JSON's integers hold */
        return element->natural > INT64_MAX ? json_string("large")
                                            : json_integer((json_int_t)element->natural);
    case PRB_ELEMENT_REAL:
        return real_json(element->real);
    case PRB_ELEMENT_COMPLEX:
        return json_pack("[o, o]", real_json(element->real), real_json(element->imag));
    }
    return NULL;
}

/* All elements, read in two calls. */
static json_t *elements_json(struct prb_target *target, const struct prb_tensor *tensor)
{
    struct prb_error err = {0};
    size_t count = tensor->numel > 100000 ? 0 : (size_t)tensor->numel, half = count / 2;
    struct prb_element *elements = calloc(count + 1, sizeof *elements);
    json_t *list = NULL;
    if (elements && prb_tensor_elements(target, tensor, 0, half, elements, &err) &&
        prb_tensor_elements(target, tensor, (int64_t)half, count - half, elements + half, &err)) {
        list = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(list, element_json(&elements[i]));
    }
    free(elements);
    return list ? list : json_string(err.text);
}

static json_t *facts(const struct prb_tensor *tensor)
{
    json_t *out = json_pack(
        "{s:b, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:I, s:b, s:s}", "torch",
        tensor->torch, "numel", (json_int_t)tensor->numel, "item_size",
        (json_int_t)tensor->item_size, "dtype", tensor->dtype, "device", tensor->device, "layout",
        tensor->layout, "data", (json_int_t)tensor->data, "storage", (json_int_t)tensor->storage,
        "storage_size", (json_int_t)tensor->storage_size, "storage_offset",
        (json_int_t)tensor->storage_offset, "contiguous", tensor->contiguous, "requires_grad",
        tensor->requires_grad, "is_leaf", tensor->is_leaf, "version", (json_int_t)tensor->version,
        "has_grad", tensor->grad != 0, "unreadable", tensor->unreadable);
    set_array(out, "shape", tensor->shape, tensor->dims);
    set_array(out, "stride", tensor->stride, tensor->dims);
    return out;
}

static json_t *tensor_json(struct prb_target *target, prb_addr object, const char *subscript,
                           struct prb_error *err)
{
    struct prb_tensor tensor;
    if (!prb_tensor_take(target, object, &tensor, err) ||
        (*subscript && !prb_tensor_slice(&tensor, subscript, &tensor, err)))
        return NULL;
    json_t *out = facts(&tensor);
    char *text = prb_tensor_text(target, &tensor, 100000, err);
    if (text)
        json_object_set_new(out, "text", json_string(text));
    free(text);
    json_object_set_new(out, "elements", elements_json(target, &tensor));
    json_object_set_new(out, "statistics", statistics_json(target, &tensor));
    return out;
}

int main(int argc, char **argv)
{
    struct prb_error err = {0};
    char line[4096];
    struct prb_target *target = argc > 1 ? prb_target_open(argv[1], NULL, &err) : NULL;
    if (!target) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        char *end;
        prb_addr object = strtoull(line, &end, 10);
        end += strspn(end, " ");
        end[strcspn(end, "\n")] = '\0';
        err = (struct prb_error){0};
        json_t *out = tensor_json(target, object, end, &err);
        if (!out)
            out = json_pack("{s:s, s:s}", "error", err.text, "code", prb_code_name(err.code));
        json_dumpf(out, stdout, 0);
        putchar('\n');
        json_decref(out);
    }
    prb_target_close(target);
    return 0;
}
