/*
 * Parts of tensors, by the text of a Python subscript: integers, slices and one "...".  A part is a
 * tensor over the same storage, so all that reads tensors reads parts.  And what every tensor that
 * was read must hold: its elements lie in its storage.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

/* ---- bounds ---- */

static bool is_contiguous(const struct prb_tensor *tensor)
{
    int64_t expected = tensor->item_size;
    for (unsigned i = tensor->dims; i-- > 0;) {
        if (tensor->shape[i] != 1 && tensor->stride[i] != expected && tensor->numel)
            return false;
        if (__builtin_mul_overflow(expected, tensor->shape[i], &expected))
            return false;
    }
    return true;
}

/* The bytes that the elements span, from the first one; false: beyond all memory. */
static bool span(const struct prb_tensor *tensor, int64_t *low_out, int64_t *high_out)
{
    int64_t low = 0, high = tensor->item_size, reach;
    for (unsigned i = 0; i < tensor->dims; i++) {
        if (__builtin_mul_overflow(tensor->shape[i] - 1, tensor->stride[i], &reach) ||
            (reach < 0 && __builtin_add_overflow(low, reach, &low)) ||
            (reach > 0 && __builtin_add_overflow(high, reach, &high)))
            return false;
    }
    *low_out = low;
    *high_out = high;
    return true;
}

static void check_span(struct prb_tensor *tensor)
{
    int64_t low, high, offset = tensor->storage_offset;
    char *why = tensor->unreadable;
    size_t cap = sizeof tensor->unreadable;
    if (!span(tensor, &low, &high) || high > INT64_MAX / 2 || low < INT64_MIN / 2)
        snprintf(why, cap, "its strides reach beyond all memory");
    else if (tensor->storage_size == 0)
        snprintf(why, cap, "its storage has been freed");
    else if (tensor->storage_size > 0 && (offset + low < 0 || offset + high > tensor->storage_size))
        snprintf(why, cap, "its elements reach over its storage of %" PRId64 " bytes",
                 tensor->storage_size);
    else if (!tensor->data)
        snprintf(why, cap, "it has no memory");
}

void prb_tensor_settle(struct prb_tensor *tensor)
{
    struct prb_element_type type;
    tensor->contiguous = is_contiguous(tensor);
    if (tensor->unreadable[0])
        return;
    if (tensor->device[0] && strncmp(tensor->device, "cpu", 3) != 0)
        snprintf(tensor->unreadable, sizeof tensor->unreadable, "it is on %s", tensor->device);
    else if (!prb_element_type_find(tensor->dtype, &type))
        snprintf(tensor->unreadable, sizeof tensor->unreadable,
                 "elements of type %.48s are not decoded", tensor->dtype);
    else if (type.dtype->size != tensor->item_size)
        snprintf(tensor->unreadable, sizeof tensor->unreadable,
                 "elements of %.48s have %u bytes here", tensor->dtype, tensor->item_size);
    else if (tensor->numel)
        check_span(tensor);
}

/* ---- subscripts ---- */

struct subscript {
    const char *at;
    const struct prb_tensor *tensor;
    struct prb_tensor *out;
    unsigned next; /* dimension of tensor */
    bool ellipsis;
};

static void skip_blanks(struct subscript *s)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
}

static bool number(struct subscript *s, int64_t *out)
{
    char *end;
    errno = 0;
    skip_blanks(s);
    long long value = strtoll(s->at, &end, 10);
    if (end == s->at || errno || value < -(INT64_C(1) << 53) || value > INT64_C(1) << 53)
        return false;
    s->at = end;
    skip_blanks(s);
    *out = value;
    return true;
}

static void keep(struct subscript *s, int64_t length, int64_t stride)
{
    s->out->shape[s->out->dims] = length;
    s->out->stride[s->out->dims++] = stride;
}

static void move(struct subscript *s, int64_t bytes)
{
    s->out->data += (uint64_t)bytes;
    s->out->storage_offset += bytes;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* As slice.indices() of Python has it. */
static bool take_slice(struct subscript *s, bool has_start, int64_t start, struct prb_error *err)
{
    int64_t length = s->tensor->shape[s->next], stride = s->tensor->stride[s->next], stop = 0,
            step = 1;
    s->at++; /* the colon */
    bool has_stop = number(s, &stop);
    skip_blanks(s);
    if (*s->at == ':') {
        s->at++;
        if (!number(s, &step))
            step = 1;
    }
    if (step == 0)
        return prb_fail(err, PRB_USAGE, "a step of 0");
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length;
    start =
        !has_start ? (step < 0 ? high : low) : clamp(start < 0 ? start + length : start, low, high);
    stop = !has_stop ? (step < 0 ? low : high) : clamp(stop < 0 ? stop + length : stop, low, high);
    int64_t away = step < 0 ? start - stop : stop - start, by = step < 0 ? -step : step;
    int64_t count = away > 0 ? (away + by - 1) / by : 0;
    if (count)
        move(s, start * stride);
    keep(s, count, stride * step);
    s->next++;
    skip_blanks(s);
    return true;
}

static bool take_index(struct subscript *s, int64_t index, struct prb_error *err)
{
    int64_t length = s->tensor->shape[s->next];
    if (index < -length || index >= length)
        return prb_fail(err, PRB_USAGE,
                        "index %" PRId64 " is out of bounds for dimension %u of size %" PRId64,
                        index, s->next, length);
    move(s, (index < 0 ? index + length : index) * s->tensor->stride[s->next]);
    s->next++;
    return true;
}

/* How many of the dimensions the rest of the text names. */
static unsigned named_after(const char *text)
{
    unsigned count = 0;
    bool any = false;
    for (; *text; text++) {
        count += *text == ',' && any;
        any |= !isspace((unsigned char)*text) && *text != ',';
        any &= *text != ',';
    }
    return count + any;
}

static bool take_ellipsis(struct subscript *s, struct prb_error *err)
{
    if (s->ellipsis)
        return prb_fail(err, PRB_USAGE, "a subscript may have only one ...");
    s->at += 3;
    skip_blanks(s);
    s->ellipsis = true;
    unsigned after = named_after(s->at);
    while (s->next + after < s->tensor->dims) {
        keep(s, s->tensor->shape[s->next], s->tensor->stride[s->next]);
        s->next++;
    }
    return true;
}

static bool take_one(struct subscript *s, struct prb_error *err)
{
    int64_t value = 0;
    skip_blanks(s);
    if (strncmp(s->at, "...", 3) == 0)
        return take_ellipsis(s, err);
    if (s->next >= s->tensor->dims)
        return prb_fail(err, PRB_USAGE, "there are only %u dimensions", s->tensor->dims);
    bool has_value = number(s, &value);
    if (*s->at == ':')
        return take_slice(s, has_value, value, err);
    if (!has_value)
        return prb_fail(err, PRB_USAGE, "a subscript is made of integers, slices and ...");
    return take_index(s, value, err);
}

bool prb_tensor_slice(const struct prb_tensor *tensor, const char *subscript,
                      struct prb_tensor *out, struct prb_error *err)
{
    struct prb_tensor part = *tensor;
    struct subscript s = {.at = subscript, .tensor = tensor, .out = &part};
    part.dims = 0;
    part.object = 0;
    for (skip_blanks(&s); *s.at; skip_blanks(&s)) {
        if (!take_one(&s, err))
            return prb_error_prefix(err, "[%.100s]", subscript);
        skip_blanks(&s);
        if (*s.at && *s.at != ',')
            return prb_fail(err, PRB_USAGE,
                            "[%.100s]: a subscript is made of integers, slices and ...", subscript);
        s.at += *s.at == ',';
    }
    for (; s.next < tensor->dims; s.next++)
        keep(&s, tensor->shape[s.next], tensor->stride[s.next]);
    part.numel = 1;
    for (unsigned i = 0; i < part.dims; i++)
        if (__builtin_mul_overflow(part.numel, part.shape[i], &part.numel))
            part.numel = 0; /* of sizes whose product is none there is one of 0 */
    for (unsigned i = 0; i < part.dims; i++)
        if (part.shape[i] == 0)
            part.numel = 0;
    prb_tensor_settle(&part);
    *out = part;
    return true;
}
