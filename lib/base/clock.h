/*
 * The monotonic clock: clock_gettime(2), CLOCK_MONOTONIC, which counts from the machine's start and
 * stands while that sleeps.
 */
#ifndef PRB_BASE_CLOCK_H
#define PRB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* ns */
static inline uint64_t prb_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* s */
static inline double prb_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
