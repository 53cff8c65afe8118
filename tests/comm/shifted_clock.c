/*
 * Preloaded into a rank: its wall clock shows SHIFT_MS more.  With LATE_EVERY=N each Nth look at it takes
 * 20 ms before it is read, as of a thread that loses the CPU there.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

static long long shift_ns(void)
{
    const char *ms = getenv("SHIFT_MS");
    return ms ? (long long)(strtod(ms, NULL) * 1e6) : 0;
}

static void be_late(void)
{
    static atomic_uint looks;
    const char *every = getenv("LATE_EVERY");
    unsigned long count = every ? strtoul(every, NULL, 10) : 0;
    if (count && atomic_fetch_add(&looks, 1) % count == count - 1)
        usleep(20000);
}

VISIBLE int clock_gettime(clockid_t clock, struct timespec *out)
{
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (clock == CLOCK_REALTIME)
        be_late();
    int failed = next(clock, out);
    if (failed || clock != CLOCK_REALTIME)
        return failed;
    long long ns = out->tv_sec * 1000000000LL + out->tv_nsec + shift_ns();
    out->tv_sec = ns / 1000000000;
    out->tv_nsec = ns % 1000000000;
    return 0;
}
