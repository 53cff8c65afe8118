/*
 * Waiting for a thread's end, but not for ever.  pthread_clockjoin_np(3) does that by the monotonic
 * clock; glibc has it since 2.31, and musl has not.
 */
#ifndef PRB_BASE_JOIN_H
#define PRB_BASE_JOIN_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

/* False: it runs still.  A clock of the machine that is set forward meanwhile shortens nothing; one
 * that is set back lengthens the wait by as much. */
static inline bool prb_join_within(pthread_t thread, uint64_t wait_ns, void **result_out)
{
    uint64_t now = prb_clock_ns(), until = now + wait_ns;
    int failed = ETIMEDOUT;
    for (; failed == ETIMEDOUT && now < until; now = prb_clock_ns()) {
        struct timespec wall;
        clock_gettime(CLOCK_REALTIME, &wall);
        uint64_t ns = (uint64_t)wall.tv_nsec + (until - now);
        wall.tv_sec += (time_t)(ns / 1000000000u);
        wall.tv_nsec = (long)(ns % 1000000000u);
        failed = pthread_timedjoin_np(thread, result_out, &wall);
    }
    return failed == 0;
}

#endif
