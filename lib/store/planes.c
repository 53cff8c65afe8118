/* See planes.h. */
#include "store/planes.h"

static uint64_t zigzag(uint64_t value) { return value << 1 ^ (uint64_t)((int64_t)value >> 63); }
static uint64_t unzigzag(uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }

/* Differences into out, which has room for count; returns how many bytes the largest has. */
static inline __attribute__((always_inline)) unsigned
differences_of(const int64_t *values, size_t count, unsigned order, uint64_t *out)
{
    uint64_t all = 0, last = 0, last_difference = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = (uint64_t)values[i], difference = value - last;
        uint64_t number = order == 0   ? value
                          : order == 1 ? difference
                                       : difference - last_difference;
        last = value;
        last_difference = difference;
        out[i] = zigzag(number);
        all |= out[i];
    }
    return all ? (71u - (unsigned)__builtin_clzll(all)) / 8 : 0;
}

/* Made for each order, as what follows for each width. */
unsigned prb_store_differences(const int64_t *values, size_t count, unsigned order, uint64_t *out)
{
    return order == 0   ? differences_of(values, count, 0, out)
           : order == 1 ? differences_of(values, count, 1, out)
                        : differences_of(values, count, 2, out);
}

static inline __attribute__((always_inline)) void planes_of(const uint64_t *values, size_t count,
                                                            unsigned width, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
#pragma GCC unroll 8
        for (unsigned plane = 0; plane < width; plane++)
            out[plane * count + i] = (uint8_t)(values[i] >> 8 * plane);
    }
}
#define TO(width)                                                                                  \
    static void to_##width(const uint64_t *values, size_t count, uint8_t *out)                     \
    {                                                                                              \
        planes_of(values, count, width, out);                                                      \
    }
TO(0)
TO(1)
TO(2)
TO(3)
TO(4)
TO(5)
TO(6)
TO(7)
TO(8)
static void (*const to_width[])(const uint64_t *, size_t,
                                uint8_t *) = {to_0, to_1, to_2, to_3, to_4, to_5, to_6, to_7, to_8};

/*
 * The way back in one pass, made for each width: a column's time is in this loop, and a pass for
 * each plane and each step behind them takes twice as long.
 */
static inline __attribute__((always_inline)) void
from_planes(const uint8_t *in, size_t count, unsigned width, unsigned order, uint64_t *out)
{
    uint64_t last = 0, last_difference = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
#pragma GCC unroll 8
        for (unsigned plane = 0; plane < width; plane++)
            value |= (uint64_t)in[plane * count + i] << 8 * plane;
        value = unzigzag(value);
        if (order) {
            last_difference = order == 1 ? value : last_difference + value;
            value = last += last_difference;
        }
        out[i] = value;
    }
}
#define FROM(width)                                                                                \
    static void from_##width(const uint8_t *in, size_t count, unsigned order, uint64_t *out)       \
    {                                                                                              \
        from_planes(in, count, width, order, out);                                                 \
    }
FROM(0)
FROM(1)
FROM(2)
FROM(3)
FROM(4)
FROM(5)
FROM(6)
FROM(7)
FROM(8)
static void (*const from_width[])(const uint8_t *, size_t, unsigned, uint64_t *) = {
    from_0, from_1, from_2, from_3, from_4, from_5, from_6, from_7, from_8};

void prb_store_planes(const uint64_t *values, size_t count, unsigned width, uint8_t *out)
{
    to_width[width](values, count, out);
}

void prb_store_from_planes(const uint8_t *in, size_t count, unsigned width, unsigned order,
                           uint64_t *out)
{
    from_width[width](in, count, order, out);
}
