/*
 * How long the probe's threads hold the GIL: preloaded, it stands before libpython's functions that
 * take and release it, and looks at the clocks there.  traced.py asks by ctypes.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int PyGILState_Ensure(void);
EXPORT void PyGILState_Release(int state);
EXPORT void *PyEval_SaveThread(void);
EXPORT void PyEval_RestoreThread(void *thread);
/* The longest hold since the last call, ns of CPU time; wall_out: of the clock. */
EXPORT double gil_held_longest(double *wall_out);

static int (*ensure)(void);
static void (*release)(int state);
static void *(*save)(void);
static void (*restore)(void *thread);

static _Atomic uint64_t longest_cpu, longest_wall;
static _Thread_local unsigned holds;
static _Thread_local uint64_t since_cpu, since_wall;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int is_probes(void)
{
    char name[16] = "";
    return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
           strncmp(name, "probing", 7) == 0;
}

static void raise_to(_Atomic uint64_t *longest, uint64_t value)
{
    uint64_t seen = atomic_load(longest);
    while (value > seen && !atomic_compare_exchange_weak(longest, &seen, value))
        ;
}

static void taken(void)
{
    if (!is_probes())
        return;
    since_cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    since_wall = clock_ns(CLOCK_MONOTONIC);
}

static void released(void)
{
    if (!since_wall)
        return;
    raise_to(&longest_cpu, clock_ns(CLOCK_THREAD_CPUTIME_ID) - since_cpu);
    raise_to(&longest_wall, clock_ns(CLOCK_MONOTONIC) - since_wall);
    since_wall = 0;
}

static void find(void)
{
    *(void **)&ensure = dlsym(RTLD_NEXT, "PyGILState_Ensure");
    *(void **)&release = dlsym(RTLD_NEXT, "PyGILState_Release");
    *(void **)&save = dlsym(RTLD_NEXT, "PyEval_SaveThread");
    *(void **)&restore = dlsym(RTLD_NEXT, "PyEval_RestoreThread");
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

int PyGILState_Ensure(void)
{
    pthread_once(&once, find);
    int state = ensure();
    if (!holds++)
        taken();
    return state;
}

void PyGILState_Release(int state)
{
    if (!--holds)
        released();
    release(state);
}

void *PyEval_SaveThread(void)
{
    pthread_once(&once, find);
    released();
    return save();
}

void PyEval_RestoreThread(void *thread)
{
    pthread_once(&once, find);
    restore(thread);
    taken();
}

double gil_held_longest(double *wall_out)
{
    *wall_out = (double)atomic_exchange(&longest_wall, 0);
    return (double)atomic_exchange(&longest_cpu, 0);
}
