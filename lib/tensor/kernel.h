/*
 * The inner loops of the statistics: sums over one block of elements, in GCC's vector types, for
 * the CPU at hand.  A block is small (it fits the first cache).  Sums are of differences from one
 * of its finite elements, so the squares lose a few digits at most, whatever the mean.
 */
#ifndef PRB_TENSOR_KERNEL_H
#define PRB_TENSOR_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRB_BLOCK 2048 /* elements */

struct prb_block {
    int64_t nan, infinite, zero;
    double low, high; /* of what is not NaN; low > high: there is none */
    double pivot;     /* sum and squares are of (element - pivot), finite elements only */
    double sum, squares;
};

struct prb_kernel {
    /* Of up to PRB_BLOCK elements, in the CPU's byte order, unaligned. */
    void (*f32)(const void *elements, size_t count, struct prb_block *out);
    void (*f64)(const void *elements, size_t count, struct prb_block *out);
    void (*half)(const void *halves, size_t count, float *out);
    void (*bfloat)(const void *halves, size_t count, float *out);
};

/* The best for this CPU. */
const struct prb_kernel *prb_kernel(void);
/* All that this CPU can run; i from 0 until NULL: for tests. */
const struct prb_kernel *prb_kernel_at(size_t i);

#endif
