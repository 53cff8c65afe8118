/* Elements of a tensor in the order of its rows: as numbers, and as nested brackets. */
#include <inttypes.h>
#include <string.h>

#include "tensor/tensor.h"

#define SPAN_MAX 65536 /* bytes that are read in one piece for the elements among them */
#define TEXT_ELEMENTS 1000
#define EDGE 3 /* elements at either end of a dimension that is cut */

bool prb_tensor_element_type(const struct prb_tensor *tensor, struct prb_element_type *out,
                             struct prb_error *err)
{
    if (!tensor->unreadable[0] && prb_element_type_find(tensor->dtype, out))
        return true;
    return prb_fail(err, PRB_UNSUPPORTED, "no elements to read: %s",
                    tensor->unreadable[0] ? tensor->unreadable : tensor->dtype);
}

static struct prb_element decode(const struct prb_tensor *tensor,
                                 const struct prb_element_type *type, const uint8_t *bytes)
{
    struct prb_element number = prb_element_of(type, bytes);
    if (tensor->negated && number.kind >= PRB_ELEMENT_REAL) {
        number.real = -number.real;
        number.imag = -number.imag;
    }
    if (tensor->conjugated)
        number.imag = -number.imag;
    return number;
}

/* ---- numbers ---- */

/* A row of elements at equal distances; address of the first one. */
static bool read_row(struct prb_mem *mem, const struct prb_tensor *tensor,
                     const struct prb_element_type *type, prb_addr at, int64_t stride, size_t count,
                     struct prb_element *out, struct prb_error *err)
{
    uint8_t bytes[SPAN_MAX];
    uint64_t by = (uint64_t)(stride < 0 ? -stride : stride);
    while (count) {
        size_t n = by ? (SPAN_MAX - type->dtype->size) / by + 1 : 1;
        n = n < count ? n : count;
        prb_addr low = stride < 0 ? at - (n - 1) * by : at;
        if (!prb_mem_read(mem, low, bytes, (n - 1) * by + type->dtype->size, err))
            return prb_error_prefix(err, "elements of the tensor");
        for (size_t i = 0; i < n; i++)
            *out++ = decode(tensor, type, bytes + (stride < 0 ? n - 1 - i : i) * by);
        at += n * (uint64_t)stride;
        count -= n;
    }
    return true;
}

bool prb_tensor_elements_in(struct prb_mem *mem, const struct prb_tensor *tensor, int64_t start,
                            size_t count, struct prb_element *out, struct prb_error *err)
{
    struct prb_element_type type;
    if (!prb_tensor_element_type(tensor, &type, err))
        return false;
    if (start < 0 || count > PRB_ELEMENTS_MAX || start > tensor->numel ||
        (int64_t)count > tensor->numel - start)
        return prb_fail(err, PRB_USAGE,
                        "elements %" PRId64 " to %" PRId64 " of %" PRId64
                        " (no more than %d at once)",
                        start, start + (int64_t)count, tensor->numel, PRB_ELEMENTS_MAX);
    int64_t length = tensor->dims ? tensor->shape[tensor->dims - 1] : 1;
    while (count) {
        int64_t rest = start;
        prb_addr at = tensor->data;
        for (unsigned i = tensor->dims; i-- > 0; rest /= tensor->shape[i])
            at += (uint64_t)(rest % tensor->shape[i] * tensor->stride[i]);
        int64_t left = length - (tensor->dims ? start % length : 0);
        size_t n = (uint64_t)left < count ? (size_t)left : count;
        int64_t stride = tensor->dims ? tensor->stride[tensor->dims - 1] : 0;
        if (!read_row(mem, tensor, &type, at, stride, n, out, err))
            return false;
        out += n;
        start += (int64_t)n;
        count -= n;
    }
    return true;
}

/* ---- text ---- */

struct writing {
    struct prb_mem *mem;
    const struct prb_tensor *tensor;
    const struct prb_element_type *type;
    bool cut; /* dimensions are shown by their ends */
    struct prb_buf *out;
};

static bool write_elements(struct writing *writing, prb_addr at, int64_t from, int64_t count,
                           struct prb_error *err)
{
    enum { PIECE = 256 };
    const struct prb_tensor *tensor = writing->tensor;
    int64_t stride = tensor->dims ? tensor->stride[tensor->dims - 1] : 0;
    struct prb_element numbers[PIECE];
    for (int64_t i = 0; i < count;) {
        size_t n = count - i < PIECE ? (size_t)(count - i) : PIECE;
        if (!read_row(writing->mem, tensor, writing->type, at + (uint64_t)((from + i) * stride),
                      stride, n, numbers, err))
            return false;
        for (size_t k = 0; k < n; k++) {
            if (i + (int64_t)k)
                prb_buf_adds(writing->out, ", ");
            prb_element_text(writing->type->dtype, &numbers[k], writing->out);
        }
        i += (int64_t)n;
    }
    return true;
}

static bool write_part(struct writing *writing, unsigned dim, prb_addr at, struct prb_error *err);

/* Items from to from + count of a dimension. */
static bool write_items(struct writing *writing, unsigned dim, prb_addr at, int64_t from,
                        int64_t count, struct prb_error *err)
{
    const struct prb_tensor *tensor = writing->tensor;
    if (dim + 1 == tensor->dims)
        return write_elements(writing, at, from, count, err);
    for (int64_t i = from; i < from + count; i++) {
        if (i > from)
            prb_buf_adds(writing->out, ", ");
        if (!write_part(writing, dim + 1, at + (uint64_t)(i * tensor->stride[dim]), err))
            return false;
    }
    return true;
}

static bool write_part(struct writing *writing, unsigned dim, prb_addr at, struct prb_error *err)
{
    if (dim == writing->tensor->dims)
        return write_elements(writing, at, 0, 1, err);
    int64_t length = writing->tensor->shape[dim];
    bool cut = writing->cut && length > 2 * EDGE;
    prb_buf_addc(writing->out, '[');
    if (!write_items(writing, dim, at, 0, cut ? EDGE : length, err))
        return false;
    if (cut) {
        prb_buf_adds(writing->out, ", ..., ");
        if (!write_items(writing, dim, at, length - EDGE, EDGE, err))
            return false;
    }
    prb_buf_addc(writing->out, ']');
    return true;
}

/* Elements and brackets that the ends of all dimensions make. */
static double shown(const struct prb_tensor *tensor, bool cut)
{
    double parts = 1, all = 0;
    for (unsigned i = 0; i < tensor->dims; i++) {
        int64_t length = tensor->shape[i];
        parts *= (double)(cut && length > 2 * EDGE ? 2 * EDGE : length);
        all += parts;
    }
    return all > parts ? all : parts;
}

bool prb_tensor_text_in(struct prb_mem *mem, const struct prb_tensor *tensor, size_t limit,
                        struct prb_buf *out, struct prb_error *err)
{
    struct prb_element_type type;
    double most = (double)(limit ? limit : TEXT_ELEMENTS);
    if (!prb_tensor_element_type(tensor, &type, err))
        return false;
    struct writing writing = {.mem = mem, .tensor = tensor, .type = &type, .out = out};
    writing.cut = shown(tensor, false) > most;
    if (shown(tensor, writing.cut) > 2 * most) {
        prb_buf_adds(out, "[...]"); /* too many dimensions even so */
        return true;
    }
    return write_part(&writing, 0, tensor->data, err) && (prb_buf_ok(out) || prb_nomem(err));
}
