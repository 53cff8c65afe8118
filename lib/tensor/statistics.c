/*
 * All elements of a tensor once: read in blocks of the target's memory, whatever its strides, made
 * float32 or float64 where they are not, summed by the kernels, and the blocks' sums put together
 * (Chan, Golub, LeVeque 1983).
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "tensor/kernel.h"
#include "tensor/tensor.h"

struct run;
typedef void block_fn(struct run *run, const uint8_t *elements, size_t count);

struct run {
    struct prb_mem *mem;
    const struct prb_tensor *tensor;
    const struct prb_kernel *kernel;
    struct prb_element_type type;
    block_fn *block;  /* takes up to PRB_BLOCK elements side by side */
    int64_t repeated; /* how often each element is there */
    float tiny[256];  /* of bytes */
    float narrow[PRB_BLOCK];
    double wide[PRB_BLOCK];
    /* so far */
    struct prb_statistics *out;
    int64_t finite;
    double mean, squares; /* of the finite ones: sum of (element - mean)^2 */
    double mean_imag, norm;
    double edges[PRB_HISTOGRAM_MAX + 1], parts; /* of the histogram; 1 / width of a part */
    int64_t bins[2]
                [PRB_HISTOGRAM_MAX]; /* in turn: the same bin twice running would wait for itself */
};

/* ---- putting blocks together ---- */

static void join(struct run *run, double count, double mean, double squares)
{
    double all = (double)run->finite + count, away = mean - run->mean;
    if (count <= 0)
        return;
    run->squares += squares + away * away * ((double)run->finite * count / all);
    run->mean += away * (count / all);
    run->finite += (int64_t)count;
}

static void add_block(struct run *run, const struct prb_block *block, size_t count)
{
    struct prb_statistics *out = run->out;
    double finite = (double)((int64_t)count - block->nan - block->infinite);
    out->count += (int64_t)count;
    out->nan += block->nan;
    out->inf += block->infinite;
    out->zero += block->zero;
    if (block->low <= block->high) {
        out->min = out->min <= block->low ? out->min : block->low; /* NaN: the block's */
        out->max = out->max >= block->high ? out->max : block->high;
    }
    if (finite > 0) {
        double away = block->sum / finite;
        join(run, finite, block->pivot + away, prb_greater(block->squares - block->sum * away, 0));
        run->norm +=
            block->squares + 2 * block->pivot * block->sum + finite * block->pivot * block->pivot;
    }
}

/* ---- blocks of each kind of element ---- */

static void sum_f32(struct run *run, const void *elements, size_t count)
{
    struct prb_block block;
    run->kernel->f32(elements, count, &block);
    add_block(run, &block, count);
}

static void sum_f64(struct run *run, const void *elements, size_t count)
{
    struct prb_block block;
    run->kernel->f64(elements, count, &block);
    add_block(run, &block, count);
}

static void block_float(struct run *run, const uint8_t *elements, size_t count)
{
    sum_f32(run, elements, count);
}

static void block_double(struct run *run, const uint8_t *elements, size_t count)
{
    sum_f64(run, elements, count);
}

static void block_half(struct run *run, const uint8_t *elements, size_t count)
{
    run->kernel->half(elements, count, run->narrow);
    sum_f32(run, run->narrow, count);
}

static void block_bfloat(struct run *run, const uint8_t *elements, size_t count)
{
    run->kernel->bfloat(elements, count, run->narrow);
    sum_f32(run, run->narrow, count);
}

static void block_bytes(struct run *run, const uint8_t *elements, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run->narrow[i] = run->tiny[elements[i]];
    sum_f32(run, run->narrow, count);
}

#define BLOCK_OF_INTEGERS(name, type, made, sum)                                                   \
    static void name(struct run *run, const uint8_t *elements, size_t count)                       \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value;                                                                            \
            memcpy(&value, elements + i * sizeof value, sizeof value);                             \
            run->made[i] = (__typeof__(run->made[0]))value;                                        \
        }                                                                                          \
        sum(run, run->made, count);                                                                \
    }
BLOCK_OF_INTEGERS(block_i16, int16_t, narrow, sum_f32)
BLOCK_OF_INTEGERS(block_u16, uint16_t, narrow, sum_f32)
BLOCK_OF_INTEGERS(block_i32, int32_t, wide, sum_f64)
BLOCK_OF_INTEGERS(block_u32, uint32_t, wide, sum_f64)
BLOCK_OF_INTEGERS(block_i64, int64_t, wide, sum_f64)
BLOCK_OF_INTEGERS(block_u64, uint64_t, wide, sum_f64)

/* One by one: other byte orders and long doubles, which are rare. */
static void block_any(struct run *run, const uint8_t *elements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct prb_element number =
            prb_element_of(&run->type, elements + i * run->type.dtype->size);
        run->wide[i] = number.kind == PRB_ELEMENT_REAL   ? number.real
                       : number.kind == PRB_ELEMENT_UINT ? (double)number.natural
                                                         : (double)number.integer;
    }
    sum_f64(run, run->wide, count);
}

static void block_complex(struct run *run, const uint8_t *elements, size_t count)
{
    struct prb_statistics *out = run->out;
    out->count += (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        struct prb_element z = prb_element_of(&run->type, elements + i * run->type.dtype->size);
        bool nan = isnan(z.real) || isnan(z.imag), infinite = isinf(z.real) || isinf(z.imag);
        out->nan += nan;
        out->inf += !nan && infinite;
        out->zero += z.real == 0 && z.imag == 0;
        if (nan || infinite)
            continue;
        double before = run->mean_imag;
        join(run, 1, z.real, 0);
        run->mean_imag += (z.imag - before) / (double)run->finite;
        run->squares += (z.imag - before) * (z.imag - run->mean_imag);
        run->norm += z.real * z.real + z.imag * z.imag;
    }
}

static bool is_complex(const struct prb_dtype *dtype)
{
    return dtype->kind >= PRB_DTYPE_COMPLEX_HALF;
}

static block_fn *block_for(struct run *run)
{
    static const struct {
        enum prb_dtype_kind kind;
        uint8_t size;
        block_fn *block;
    } blocks[] = {
        {PRB_DTYPE_FLOAT, 4, block_float}, {PRB_DTYPE_DOUBLE, 8, block_double},
        {PRB_DTYPE_HALF, 2, block_half},   {PRB_DTYPE_BFLOAT, 2, block_bfloat},
        {PRB_DTYPE_INT, 1, block_bytes},   {PRB_DTYPE_UINT, 1, block_bytes},
        {PRB_DTYPE_BOOL, 1, block_bytes},  {PRB_DTYPE_TINY, 1, block_bytes},
        {PRB_DTYPE_INT, 2, block_i16},     {PRB_DTYPE_UINT, 2, block_u16},
        {PRB_DTYPE_INT, 4, block_i32},     {PRB_DTYPE_UINT, 4, block_u32},
        {PRB_DTYPE_INT, 8, block_i64},     {PRB_DTYPE_UINT, 8, block_u64},
    };
    const struct prb_dtype *dtype = run->type.dtype;
    if (is_complex(dtype))
        return block_complex;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && !run->type.swapped; i++)
        if (blocks[i].kind == dtype->kind && blocks[i].size == dtype->size)
            return blocks[i].block;
    return block_any;
}

static void fill_table(struct run *run)
{
    const struct prb_dtype *dtype = run->type.dtype;
    if (dtype->kind == PRB_DTYPE_TINY)
        prb_tiny_table(&dtype->tiny, run->tiny);
    for (int i = 0; i < 256 && dtype->kind != PRB_DTYPE_TINY; i++)
        run->tiny[i] = dtype->kind == PRB_DTYPE_BOOL  ? (float)(i != 0)
                       : dtype->kind == PRB_DTYPE_INT ? (float)(int8_t)i
                                                      : (float)i;
}

/* ---- the histogram, in passes of its own ---- */

typedef void number_fn(struct run *run, double value);

static void each_number(struct run *run, const uint8_t *elements, size_t count, number_fn *each)
{
    for (size_t i = 0; i < count; i++) {
        struct prb_element element =
            prb_element_of(&run->type, elements + i * run->type.dtype->size);
        each(run, element.kind == PRB_ELEMENT_REAL   ? element.real
                  : element.kind == PRB_ELEMENT_UINT ? (double)element.natural
                                                     : (double)element.integer);
    }
}

static void widen(struct run *run, double value)
{
    if (!isfinite(value))
        return;
    run->out->low = prb_lesser(run->out->low, value);
    run->out->high = prb_greater(run->out->high, value);
}

static void block_range(struct run *run, const uint8_t *elements, size_t count)
{
    each_number(run, elements, count, widen);
}

/* The part of a number between the bounds.  The product rounds: the edges decide. */
static inline unsigned bin_of(const double *edges, double low, double parts, unsigned last,
                              double value)
{
    double at = (value - low) * parts;
    unsigned bin = at < last ? (unsigned)at : last;
    return bin - (value < edges[bin]) + (value >= edges[bin + 1]);
}

static void count_bin(struct run *run, double value)
{
    const struct prb_statistics *out = run->out;
    if (value >= out->low && value <= out->high)
        run->bins[0][bin_of(run->edges, out->low, run->parts, out->bins - 1, value)]++;
}

/* With the edges as numpy has them; the last part has its own end. */
static void prepare_bins(struct run *run)
{
    struct prb_statistics *out = run->out;
    double width = (out->high - out->low) / out->bins;
    for (unsigned i = 0; i < out->bins; i++)
        run->edges[i] = out->low + i * width;
    run->edges[out->bins] = INFINITY;
    run->parts = width > 0 ? 1 / width : INFINITY;
}

static void block_histogram(struct run *run, const uint8_t *elements, size_t count)
{
    if (run->type.swapped || run->type.dtype->kind != PRB_DTYPE_FLOAT) {
        each_number(run, elements, count, count_bin);
        return;
    }
    double low = run->out->low, high = run->out->high, parts = run->parts;
    unsigned last = run->out->bins - 1;
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, elements + i * sizeof value, sizeof value);
        if ((double)value >= low && (double)value <= high)
            run->bins[i & 1][bin_of(run->edges, low, parts, last, (double)value)]++;
    }
}

/* ---- all of it ---- */

static void take_block(void *context, const uint8_t *elements, size_t count)
{
    struct run *run = context;
    run->block(run, elements, count);
}

/* One pass over all elements. */
static bool pass(struct run *run, block_fn *block, struct prb_error *err)
{
    run->block = block;
    return prb_tensor_each_block(run->mem, run->tensor, take_block, run, &run->repeated, err);
}

static void finish(struct run *run, const struct prb_tensor *tensor)
{
    struct prb_statistics *out = run->out;
    double times = (double)run->repeated, finite = (double)run->finite * times;
    out->count *= run->repeated;
    out->nan *= run->repeated;
    out->inf *= run->repeated;
    out->zero *= run->repeated;
    if (run->finite) {
        double divisor = finite - (tensor->torch ? 1 : 0);
        out->mean = run->mean;
        out->mean_imag = run->mean_imag;
        out->std = divisor > 0 ? prb_sqrt(run->squares * times / divisor) : NAN;
        out->norm = prb_sqrt(prb_greater(run->norm, 0) * times);
    }
    if (tensor->negated) {
        double low = out->min;
        out->min = -out->max;
        out->max = -low;
        out->mean = -out->mean;
        out->mean_imag = -out->mean_imag;
    }
    if (tensor->conjugated)
        out->mean_imag = -out->mean_imag;
}

/* The bounds that the caller gave, or those of the finite elements. */
static bool find_bounds(struct run *run, const struct prb_statistics_options *options,
                        struct prb_error *err)
{
    struct prb_statistics *out = run->out;
    bool given = options->low != 0 || options->high != 0;
    out->low = given ? options->low : out->min;
    out->high = given ? options->high : out->max;
    if (!isinf(out->low) && !isinf(out->high))
        return true;
    out->low = INFINITY;
    out->high = -INFINITY;
    return pass(run, block_range, err);
}

static bool take_histogram(struct run *run, const struct prb_statistics_options *options,
                           struct prb_error *err)
{
    struct prb_statistics *out = run->out;
    if (!find_bounds(run, options, err))
        return false;
    if (!(out->low <= out->high)) { /* no numbers at all */
        out->low = out->high = 0;
        return true;
    }
    if (out->low == out->high) { /* as numpy has it */
        out->low -= 0.5;
        out->high += 0.5;
    }
    out->bins = options->bins < PRB_HISTOGRAM_MAX ? options->bins : PRB_HISTOGRAM_MAX;
    prepare_bins(run);
    if (!pass(run, block_histogram, err))
        return false;
    for (unsigned i = 0; i < out->bins; i++)
        out->histogram[i] = (run->bins[0][i] + run->bins[1][i]) * run->repeated;
    return true;
}

PRB_DEFINE_AUTO_PTR(run, struct run, free)

bool prb_tensor_statistics_in(struct prb_mem *mem, const struct prb_tensor *tensor,
                              const struct prb_statistics_options *options,
                              struct prb_statistics *out, struct prb_error *err)
{
    struct prb_statistics made = {.min = NAN, .max = NAN, .mean = NAN, .std = NAN, .norm = NAN};
    PRB_AUTO(run) struct run *run = calloc(1, sizeof *run);
    if (!run)
        return prb_nomem(err);
    if (!prb_tensor_element_type(tensor, &run->type, err))
        return false;
    run->mem = mem;
    run->tensor = tensor;
    run->kernel = prb_kernel();
    run->out = &made;
    fill_table(run);
    if (!pass(run, block_for(run), err))
        return false;
    finish(run, tensor);
    if (options && options->bins && tensor->numel && !is_complex(run->type.dtype) &&
        !tensor->negated && !take_histogram(run, options, err))
        return false;
    *out = made;
    return true;
}
