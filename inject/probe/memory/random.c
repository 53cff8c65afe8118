/* Random distances and the weights of samples (memory.h).  Accurate to 1e-9: tests/unit/memory.c. */
#include "inject/probe/memory/memory.h"

#include <string.h>

#define LN2 0.693147180559945309
#define SURE 40.0 /* e^-40 is below what a double shows beside 1 */

/* xorshift64*, Marsaglia (2003), Vigna (2016). */
uint64_t prb_memory_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* The natural logarithm of a normal number: of its mantissa m in [1, 2) by the series of the
 * inverse hyperbolic tangent, 2 atanh((m - 1) / (m + 1)), with m below the square root of 2. */
static double logarithm(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.41421356237309505) {
        m /= 2;
        exponent++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 15; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return exponent * LN2 + 2 * s * sum;
}

double prb_memory_exponential(uint64_t *state)
{
    /* In (0, 1]: the lowest value is 2^-53. */
    double u = (double)((prb_memory_random(state) >> 11) + 1) * 0x1p-53;
    return -logarithm(u);
}

double prb_memory_chance(double x)
{
    if (!(x > 0))
        return 0;
    if (x > SURE)
        return 1;
    /* e^-x - 1 of x / 2^n below 1/2 by its series; then n times (1 + y)^2 - 1 = y (y + 2). */
    int n = 0;
    for (; x >= 0.5; x /= 2)
        n++;
    double term = -x, sum = 0;
    for (int k = 1; k <= 14; k++) {
        sum += term;
        term *= -x / (k + 1);
    }
    for (; n; n--)
        sum *= sum + 2;
    return -sum;
}
