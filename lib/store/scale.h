/* Doubles as integers, where every value of a column is exactly one in some scale. */
#ifndef PRB_STORE_SCALE_H
#define PRB_STORE_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum prb_store_scale {
    PRB_STORE_BITS,      /* a double's bits; or an integer */
    PRB_STORE_THOUSANDS, /* k / 10^3 */
    PRB_STORE_MILLIONS,
    PRB_STORE_BILLIONS,
    PRB_STORE_BINARY, /* k * 2^-shift */
    PRB_STORE_SCALES
};
#define PRB_STORE_SHIFT_MAX 60 /* of k * 2^-shift */

static inline uint64_t prb_store_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The most binary digits behind the point that a value has; PRB_STORE_SHIFT_MAX + 1: too many. */
int prb_store_fraction_digits(const double *values, size_t count);
/* False: not every value is exact in this scale. */
bool prb_store_scale(const double *values, size_t count, enum prb_store_scale scale, int shift,
                     int64_t *out);
/* In place: integers to the bits of doubles. */
void prb_store_unscale(uint64_t *numbers, size_t count, enum prb_store_scale scale, int shift);

#endif
