/*
 * All elements of a tensor, whatever its strides, read once in windows of the target's memory and
 * given in blocks where they lie side by side.  No order: dimensions are taken by falling stride.
 */
#include <string.h>

#include "tensor/kernel.h"
#include "tensor/tensor.h"

/* How often the memory of a tensor may be read again for elements that overlap, beside this much.
 */
#define OVERLAP_MAX 4096
#define OVERLAP_FREE (64 << 20) /* elements */
/* Bytes that are read at once: few enough for the CPU's cache, and enough to be worth a system
 * call. */
#define WINDOW (1u << 20)

/* A dimension as the walk takes it: no order, no sign. */
struct axis {
    int64_t length, stride; /* elements, bytes > 0 */
};

struct reading {
    struct prb_mem *mem;
    size_t size;                           /* bytes of an element */
    struct axis axes[PRB_TENSOR_DIMS_MAX]; /* largest stride first */
    unsigned dims;
    int64_t repeated; /* how often each element is there: dimensions of stride 0 */
    uint8_t *window, *gathered;
    prb_elements_fn *each;
    void *context;
};

static void give(struct reading *reading, const uint8_t *elements, size_t count)
{
    for (size_t i = 0; i < count; i += PRB_BLOCK)
        reading->each(reading->context, elements + i * reading->size,
                      count - i < PRB_BLOCK ? count - i : PRB_BLOCK);
}

/* Elements at equal distances, side by side into gathered. */
static void gather(uint8_t *out, const uint8_t *from, int64_t stride, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++, from += stride, out += size)
        switch (size) {
        case 1:
            *out = *from;
            break;
        case 2:
            memcpy(out, from, 2);
            break;
        case 4:
            memcpy(out, from, 4);
            break;
        case 8:
            memcpy(out, from, 8);
            break;
        default:
            memcpy(out, from, size);
        }
}

/* From the innermost axes as far as they fit a window: bytes that they span, elements in them. */
static size_t span_of(const struct reading *reading, unsigned axis)
{
    uint64_t span = reading->size;
    for (unsigned i = axis; i < reading->dims; i++) {
        span += (uint64_t)(reading->axes[i].length - 1) * (uint64_t)reading->axes[i].stride;
        if (span > WINDOW)
            return SIZE_MAX;
    }
    return (size_t)span;
}

/* A part that lies in the window. */
static size_t gather_part(struct reading *reading, unsigned axis, const uint8_t *from, uint8_t *out)
{
    size_t size = reading->size, made = 0;
    if (axis == reading->dims) {
        memcpy(out, from, size);
        return 1;
    }
    const struct axis *is = &reading->axes[axis];
    if (axis + 1 == reading->dims) {
        gather(out, from, is->stride, (size_t)is->length, size);
        return (size_t)is->length;
    }
    for (int64_t i = 0; i < is->length; i++)
        made += gather_part(reading, axis + 1, from + i * is->stride, out + made * size);
    return made;
}

static bool read_window(struct reading *reading, prb_addr at, size_t len, struct prb_error *err)
{
    return prb_mem_read(reading->mem, at, reading->window, len, err) ||
           prb_error_prefix(err, "elements of the tensor");
}

/* Elements may overlap (torch.as_strided), so a window can hold more of them than its bytes. */
static bool fits_gathered(const struct reading *reading, unsigned axis)
{
    uint64_t count = 1;
    for (unsigned i = axis; i < reading->dims && count <= WINDOW; i++)
        count *= (uint64_t)reading->axes[i].length <= WINDOW ? (uint64_t)reading->axes[i].length
                                                             : WINDOW + 1;
    return count * reading->size <= WINDOW;
}

/* One axis whose elements lie side by side, or at equal distances, piece by piece. */
static bool walk_line(struct reading *reading, prb_addr at, struct prb_error *err)
{
    const struct axis *axis = &reading->axes[reading->dims - 1];
    size_t size = reading->size;
    uint64_t stride = (uint64_t)axis->stride;
    uint64_t most = stride < WINDOW ? (WINDOW - size) / stride + 1 : 1;
    if (most > WINDOW / size)
        most = WINDOW / size;
    for (uint64_t done = 0, n; done < (uint64_t)axis->length; done += n) {
        n = (uint64_t)axis->length - done < most ? (uint64_t)axis->length - done : most;
        if (!read_window(reading, at + done * stride, (n - 1) * stride + size, err))
            return false;
        if (stride == size) {
            give(reading, reading->window, n);
            continue;
        }
        gather(reading->gathered, reading->window, axis->stride, n, size);
        give(reading, reading->gathered, n);
    }
    return true;
}

static bool walk(struct reading *reading, unsigned axis, prb_addr at, struct prb_error *err)
{
    size_t span = span_of(reading, axis);
    if (span != SIZE_MAX && fits_gathered(reading, axis)) {
        if (!read_window(reading, at, span, err))
            return false;
        give(reading, reading->gathered,
             gather_part(reading, axis, reading->window, reading->gathered));
        return true;
    }
    if (axis + 1 == reading->dims)
        return walk_line(reading, at, err);
    for (int64_t i = 0; i < reading->axes[axis].length; i++)
        if (!walk(reading, axis + 1, at + (uint64_t)(i * reading->axes[axis].stride), err))
            return false;
    return true;
}

static void insert_axis(struct reading *reading, int64_t length, int64_t stride)
{
    unsigned i = reading->dims++;
    for (; i > 0 && reading->axes[i - 1].stride < stride; i--)
        reading->axes[i] = reading->axes[i - 1];
    reading->axes[i] = (struct axis){length, stride};
}

/* Axes by falling stride, those that continue each other as one; the address of the lowest element.
 */
static prb_addr plan(struct reading *reading, const struct prb_tensor *tensor)
{
    prb_addr at = tensor->data;
    reading->repeated = 1;
    for (unsigned i = 0; i < tensor->dims; i++) {
        int64_t length = tensor->shape[i], stride = tensor->stride[i];
        if (stride < 0) {
            at += (uint64_t)((length - 1) * stride);
            stride = -stride;
        }
        if (length > 1 && stride == 0)
            reading->repeated *= length;
        else if (length > 1)
            insert_axis(reading, length, stride);
    }
    for (unsigned i = reading->dims; i-- > 1;) {
        struct axis *outer = &reading->axes[i - 1], *inner = &reading->axes[i];
        if (outer->stride != inner->stride * inner->length)
            continue;
        *outer = (struct axis){outer->length * inner->length, inner->stride};
        memmove(inner, inner + 1, (reading->dims - i - 1) * sizeof *inner);
        reading->dims--;
    }
    if (!reading->dims)
        reading->axes[reading->dims++] = (struct axis){1, reading->size};
    return at;
}

/* Bytes from the lowest element to the end of the highest. */
static uint64_t whole_span(const struct reading *reading)
{
    uint64_t span = reading->size;
    for (unsigned i = 0; i < reading->dims; i++)
        span += (uint64_t)(reading->axes[i].length - 1) * (uint64_t)reading->axes[i].stride;
    return span;
}

/* Sizes and strides are the target's word: a page can hold 2^60 elements that overlap. */
static bool overlaps_too_much(const struct reading *reading, int64_t numel)
{
    uint64_t once = (uint64_t)(numel / reading->repeated);
    return once > OVERLAP_FREE && once / OVERLAP_MAX > whole_span(reading) / reading->size;
}

/* What the windows need: most tensors are small. */
static size_t room_for(const struct reading *reading, int64_t numel)
{
    uint64_t span = whole_span(reading), once = (uint64_t)(numel / reading->repeated);
    if (span >= WINDOW || once >= WINDOW / reading->size)
        return WINDOW;
    return (size_t)(span > once * reading->size ? span : once * reading->size);
}

bool prb_tensor_each_block(struct prb_mem *mem, const struct prb_tensor *tensor,
                           prb_elements_fn *each, void *context, int64_t *repeated_out,
                           struct prb_error *err)
{
    struct reading reading = {
        .mem = mem, .size = tensor->item_size, .each = each, .context = context};
    *repeated_out = 1;
    if (!tensor->numel)
        return true;
    prb_addr at = plan(&reading, tensor);
    *repeated_out = reading.repeated;
    size_t room = room_for(&reading, tensor->numel);
    PRB_AUTO_FREE uint8_t *memory = malloc(2 * room);
    if (!memory)
        return prb_nomem(err);
    reading.window = memory;
    reading.gathered = memory + room;
    if (overlaps_too_much(&reading, tensor->numel))
        return prb_fail(err, PRB_UNSUPPORTED,
                        "no elements to read: too many of them overlap in memory");
    return walk(&reading, 0, at, err);
}
