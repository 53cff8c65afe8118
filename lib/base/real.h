/*
 * The little arithmetic of reals that we need.  The same of <math.h> are calls into libm, which costs
 * each command 0.06 ms to load, and nothing else of it is called.
 */
#ifndef PRB_BASE_REAL_H
#define PRB_BASE_REAL_H

#include <stdbool.h>
#include <stdint.h>
#ifdef __x86_64__
#include <emmintrin.h>
#else
#include <arm_neon.h>
#endif

/* False where there are no fractions (2^52), for infinities and NaN. */
static inline bool prb_has_fraction(double value) { return value > -0x1p52 && value < 0x1p52; }

/* The largest integer that is not above it. */
static inline double prb_floor(double value)
{
    if (!prb_has_fraction(value))
        return value;
    double whole = (double)(int64_t)value;
    return whole > value ? whole - 1 : whole;
}

/* To the nearest integer. */
static inline double prb_round(double value)
{
    return prb_has_fraction(value) ? prb_floor(value + 0.5) : value;
}

static inline double prb_sqrt(double value)
{
#ifdef __x86_64__
    __m128d both = _mm_set_sd(value);
    return _mm_cvtsd_f64(_mm_sqrt_sd(both, both));
#else
    return vget_lane_f64(vsqrt_f64(vdup_n_f64(value)), 0);
#endif
}

/* The other one where one is NaN. */
static inline double prb_lesser(double a, double b) { return a < b || b != b ? a : b; }

static inline double prb_greater(double a, double b) { return a > b || b != b ? a : b; }

#endif
