/*
 * The inner loops (kernel.h), written once in kernel_body.h and compiled for each kind of CPU: the
 * plain one (SSE2, NEON) and AVX2.  Vector types of GCC and clang throughout.
 */
#include "tensor/kernel.h"

#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* By memcpy: elements need not be aligned. */
#define LOAD(vector, from) memcpy(&(vector), (from), sizeof(vector))

/* Lane by lane a where the mask is set, else b. */
#define CHOOSE(mask, a, b)                                                                         \
    ((__typeof__(a))(((__typeof__(mask))(a) & (mask)) | ((__typeof__(mask))(b) & ~(mask))))

static void block_init(double pivot, struct prb_block *out)
{
    *out = (struct prb_block){.low = INFINITY, .high = -INFINITY, .pivot = pivot};
}

/* Neither is NaN: fmin() would be a call for each lane. */
static double lesser(double a, double b) { return b < a ? b : a; }

static double greater(double a, double b) { return b > a ? b : a; }

static double first_finite32(const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value;
        LOAD(value, from + sizeof value * i);
        if (isfinite(value))
            return (double)value;
    }
    return 0;
}

static double first_finite64(const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double value;
        LOAD(value, from + sizeof value * i);
        if (isfinite(value))
            return value;
    }
    return 0;
}

/* The last elements of a block, which fill no vector. */
static void add_one(double value, struct prb_block *out)
{
    out->zero += value == 0;
    out->nan += isnan(value);
    out->infinite += isinf(value) != 0;
    out->low = value < out->low ? value : out->low;
    out->high = value > out->high ? value : out->high;
    if (isfinite(value)) {
        out->sum += value - out->pivot;
        out->squares += (value - out->pivot) * (value - out->pivot);
    }
}

#define NAME(x) plain_##x
#define BYTES 16
#define WIDE(x) __builtin_convertvector(x, plain_f64)
#define PLUS(a, b) ((a) + (b))
#if defined(__SSE2__) && !defined(__clang__)
#define MIN32(a, b) __builtin_ia32_minps(a, b)
#define MAX32(a, b) __builtin_ia32_maxps(a, b)
#define MIN64(a, b) __builtin_ia32_minpd(a, b)
#define MAX64(a, b) __builtin_ia32_maxpd(a, b)
#else
#define MIN32(a, b) CHOOSE((a) < (b), a, b)
#define MAX32(a, b) CHOOSE((a) > (b), a, b)
#define MIN64(a, b) CHOOSE((a) < (b), a, b)
#define MAX64(a, b) CHOOSE((a) > (b), a, b)
#endif
#include "tensor/kernel_body.h"

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define NAME(x) avx2_##x
#define BYTES 32
#define MIN32(a, b) __builtin_ia32_minps256(a, b)
#define MAX32(a, b) __builtin_ia32_maxps256(a, b)
#define MIN64(a, b) __builtin_ia32_minpd256(a, b)
#define MAX64(a, b) __builtin_ia32_maxpd256(a, b)
/* What GCC 12 makes of __builtin_convertvector here is four times slower. */
#define WIDE(x) __builtin_ia32_cvtps2pd256(x)
/* Adders also widen and subtract, so they are the ones that are waited for, not multipliers. */
#define PLUS(a, b) __builtin_ia32_vfmaddpd256(b, (avx2_f64){1, 1, 1, 1}, a)
#include "tensor/kernel_body.h"
#pragma GCC pop_options

/* Asked here, when somebody sums: __builtin_cpu_supports() asks for everything when the program
 * starts, and each question costs a virtual machine microseconds. */
static bool has_avx2(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (bit_FMA | bit_OSXSAVE)) != (bit_FMA | bit_OSXSAVE))
        return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    const unsigned kept = 6; /* the kernel saves both halves of the registers */
    return (low & kept) == kept && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}
#define HAS_AVX2 has_avx2()
#endif

const struct prb_kernel *prb_kernel_at(size_t i)
{
#ifdef HAS_AVX2
    if (HAS_AVX2 && i-- == 0)
        return &avx2_kernel;
#endif
    return i == 0 ? &plain_kernel : NULL;
}

const struct prb_kernel *prb_kernel(void) { return prb_kernel_at(0); }
