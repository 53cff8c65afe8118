/*
 * Two clocks of clock_gettime(2).  The monotonic one counts from the machine's start and stands while
 * that sleeps: how long something took, and how long to wait.  The epoch's may be set at any moment:
 * when something was.
 */
#ifndef PRB_BASE_CLOCK_H
#define PRB_BASE_CLOCK_H

#include <errno.h>
#include <pthread.h>
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

/* ns since the epoch */
static inline int64_t prb_clock_epoch_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* s since the epoch */
static inline double prb_clock_epoch_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A time of prb_clock_s(), or how long, as libc takes it: pthread_cond_timedwait(3), ppoll(2). */
static inline struct timespec prb_clock_timespec(double s)
{
    time_t whole = (time_t)s;
    return (struct timespec){.tv_sec = whole, .tv_nsec = (long)((s - (double)whole) * 1e9)};
}

/* The same of prb_clock_ns(). */
static inline struct timespec prb_clock_timespec_ns(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

/* So many s from now: pthread_cond_timedwait(3) takes this. */
static inline struct timespec prb_clock_in(double s)
{
    return prb_clock_timespec(prb_clock_s() + s);
}

/* The same of the epoch's clock: pthread_mutex_timedlock(3) knows no other. */
static inline struct timespec prb_clock_epoch_in(double s)
{
    int64_t ns = prb_clock_epoch_ns() + (int64_t)(s * 1e9);
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* Signals do not end it. */
static inline void prb_clock_sleep_until(double s)
{
    struct timespec at = prb_clock_timespec(s);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

/* Conditions wait by the monotonic clock; one that libc's own initializer made would wait by the epoch's. */
static inline void prb_clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* A condition of a whole file's, made before any other code of the program or library runs. */
#define PRB_CLOCK_COND(cond)                                                                       \
    __attribute__((constructor(101))) static void make_condition(void)                             \
    {                                                                                              \
        prb_clock_cond_init(&(cond));                                                              \
    }

#endif
