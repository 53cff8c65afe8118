/* See scale.h. */
#include "store/scale.h"

#include "base/real.h"

#define EXACT 0x1p53 /* integers below are doubles */

static const double divisors[PRB_STORE_SCALES] = {
    [PRB_STORE_THOUSANDS] = 1e3, [PRB_STORE_MILLIONS] = 1e6, [PRB_STORE_BILLIONS] = 1e9};

#define MANTISSA_BITS 52 /* IEEE 754, binary64 */
#define EXPONENT_BIAS 1023
#define EXPONENT_MAX 0x7ff /* infinities and NaN */

/* Exact, and so is a product with it, while neither is subnormal. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(EXPONENT_BIAS + exponent) << MANTISSA_BITS;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double unscaled(int64_t k, enum prb_store_scale scale, int shift)
{
    return scale == PRB_STORE_BINARY ? (double)k * power_of_two(-shift)
                                     : (double)k / divisors[scale];
}

/* False: it is not exactly k in this scale. */
static bool scaled(double value, enum prb_store_scale scale, int shift, int64_t *out)
{
    double k = value * (scale == PRB_STORE_BINARY ? power_of_two(shift) : divisors[scale]);
    if (!(k > -EXACT && k < EXACT))
        return false;
    *out = (int64_t)prb_round(k);
    return prb_store_bits(unscaled(*out, scale, shift)) == prb_store_bits(value);
}

/* Binary digits behind the point, PRB_STORE_SHIFT_MAX + 1 for too many. */
static int fraction_digits(double value)
{
    uint64_t bits = prb_store_bits(value), mantissa = bits & ((UINT64_C(1) << MANTISSA_BITS) - 1);
    int exponent = (int)(bits >> MANTISSA_BITS & EXPONENT_MAX);
    if (exponent == EXPONENT_MAX)
        return PRB_STORE_SHIFT_MAX + 1;
    if (exponent == 0)
        return mantissa ? PRB_STORE_SHIFT_MAX + 1 : 0; /* subnormal; zero */
    int zeros = mantissa ? __builtin_ctzll(mantissa) : MANTISSA_BITS;
    int digits = MANTISSA_BITS - zeros - (exponent - EXPONENT_BIAS);
    return digits < 0 ? 0 : digits > PRB_STORE_SHIFT_MAX ? PRB_STORE_SHIFT_MAX + 1 : digits;
}

int prb_store_fraction_digits(const double *values, size_t count)
{
    int most = 0;
    for (size_t i = 0; i < count && most <= PRB_STORE_SHIFT_MAX; i++) {
        int digits = fraction_digits(values[i]);
        most = digits > most ? digits : most;
    }
    return most;
}

bool prb_store_scale(const double *values, size_t count, enum prb_store_scale scale, int shift,
                     int64_t *out)
{
    if (scale == PRB_STORE_BITS) {
        memcpy(out, values, count * sizeof *values);
        return true;
    }
    if (scale == PRB_STORE_BINARY && shift > PRB_STORE_SHIFT_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!scaled(values[i], scale, shift, &out[i]))
            return false;
    return true;
}

void prb_store_unscale(uint64_t *numbers, size_t count, enum prb_store_scale scale, int shift)
{
    for (size_t i = 0; scale != PRB_STORE_BITS && i < count; i++)
        numbers[i] = prb_store_bits(unscaled((int64_t)numbers[i], scale, shift));
}
