/*
 * Where PyTorch's CUDA allocator counts: see allocator.h.  What is relied on, the same in its headers
 * from 2.1 to 2.14: the order of the arrays (struct DeviceStats), and that the object to which
 * `allocator` points has a vector of pointers to one object for each device.
 */
#include "inject/probe/cuda/allocator.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define LIBRARY "libc10_cuda.so" /* Python loads it RTLD_LOCAL */
#define SYMBOL "_ZN3c104cuda20CUDACachingAllocator9allocatorE"
#define OBJECT_WORDS 8192 /* in which the vector is: the 2,824th in 2.14, behind locks and maps */
#define DEVICE_WORDS 512  /* in which the numbers are: behind a lock, at the sixth in 2.14 */
#define LEAST_BLOCK 512   /* bytes: kMinBlockSize */

enum { ALLOCATION, SEGMENT, ACTIVE, INACTIVE_SPLIT, ALLOCATED_BYTES, RESERVED_BYTES, ARRAYS };
enum { ALL, SMALL, LARGE, POOLS };
enum { CURRENT, PEAK, ALLOCATED, FREED, NUMBERS };
#define ARRAY (POOLS * NUMBERS)

struct prb_cuda_counters prb_cuda_counters;

/* ---- reading ---- */

/* Up to so many words; returns how many there are. */
static size_t read_words(uint64_t from, size_t count, uint64_t *out)
{
    struct iovec mine = {out, count * sizeof *out}, there = {(void *)(uintptr_t)from, mine.iov_len};
    if (!from || from % sizeof *out)
        return 0;
    ssize_t got = process_vm_readv(getpid(), &mine, 1, &there, 1, 0);
    return got < 0 ? 0 : (size_t)got / sizeof *out;
}

/* ---- the numbers ---- */

static int64_t at(const uint64_t *words, int array, int pool, int number)
{
    return (int64_t)words[array * ARRAY + pool * NUMBERS + number];
}

/* All is the sum of small and large blocks; no peak is below what is there. */
static bool adds_up(const uint64_t *words, int array)
{
    for (int pool = ALL; pool < POOLS; pool++)
        for (int number = CURRENT; number < NUMBERS; number++)
            if (at(words, array, pool, number) < 0 ||
                at(words, array, pool, PEAK) < at(words, array, pool, CURRENT))
                return false;
    for (int number = CURRENT; number < NUMBERS; number++)
        if (number != PEAK && (uint64_t)at(words, array, ALL, number) !=
                                  (uint64_t)at(words, array, SMALL, number) +
                                      (uint64_t)at(words, array, LARGE, number))
            return false;
    return true;
}

/* Of a device that is used.  Numbers that change meanwhile may fail: the next look finds them. */
static bool are_numbers(const uint64_t *words)
{
    for (int array = 0; array < ARRAYS; array++)
        if (!adds_up(words, array))
            return false;
    int64_t blocks = at(words, ALLOCATION, ALL, CURRENT);
    int64_t bytes = at(words, ALLOCATED_BYTES, ALL, CURRENT);
    return blocks > 0 && at(words, ACTIVE, ALL, CURRENT) >= blocks &&
           at(words, SEGMENT, ALL, CURRENT) > 0 && bytes / LEAST_BLOCK >= blocks &&
           at(words, RESERVED_BYTES, ALL, CURRENT) >= bytes;
}

/* Words in front of the numbers of a device; below 0: it has none, or is not used. */
static int find_numbers(uint64_t device)
{
    uint64_t words[DEVICE_WORDS];
    size_t count = read_words(device, DEVICE_WORDS, words);
    for (size_t i = 0; i + ARRAYS * ARRAY <= count; i++)
        if (are_numbers(words + i))
            return (int)i;
    return -1;
}

/* ---- the devices ---- */

static struct {
    size_t count; /* 0: not found */
    const volatile int64_t *numbers[PRB_CUDA_DEVICES_MAX];
    bool used[PRB_CUDA_DEVICES_MAX]; /* it is among those that are read */
} all;

static atomic_flag looking = ATOMIC_FLAG_INIT;
static atomic_bool
    over; /* exit(3) takes the allocator down, which came before; threads may still run */

static void end(void)
{
    over = true;
    atomic_store(&prb_cuda_counters.count, 0);
}

/* A machine has eight devices, and a rank uses one: only that is read for each row. */
static void add_used(void)
{
    size_t count = atomic_load(&prb_cuda_counters.count);
    for (size_t i = 0; i < all.count; i++)
        if (!all.used[i] && all.numbers[i][RESERVED_BYTES * ARRAY + PEAK] > 0) {
            all.used[i] = true;
            prb_cuda_counters.devices[count++] = all.numbers[i];
        }
    atomic_store_explicit(&prb_cuda_counters.count, count, memory_order_release);
}

static void found(const uint64_t *devices, size_t count, int offset)
{
    for (size_t i = 0; i < count; i++)
        all.numbers[i] = (const volatile int64_t *)(uintptr_t)devices[i] + (size_t)offset;
    all.count = count;
    atexit(end);
    add_used();
}

/* A vector: where it begins, ends, and where its memory ends. */
static bool look_at_vector(const uint64_t words[3])
{
    uint64_t devices[PRB_CUDA_DEVICES_MAX], size = words[1] - words[0];
    size_t count = (size_t)(size / sizeof *devices);
    if (words[1] <= words[0] || words[2] < words[1] || size % sizeof *devices ||
        count > PRB_CUDA_DEVICES_MAX || read_words(words[0], count, devices) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!devices[i] || devices[i] % sizeof(int64_t))
            return false;
    for (size_t i = 0; i < count; i++) {
        int offset = find_numbers(devices[i]);
        if (offset < 0)
            continue;
        found(devices, count, offset);
        return true;
    }
    return false;
}

static uint64_t symbol(void)
{
    void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void *there = library ? dlsym(library, SYMBOL) : NULL;
    if (library)
        dlclose(library); /* it stays loaded: NOLOAD only counted it */
    return (uint64_t)(uintptr_t)there;
}

bool prb_cuda_allocator_is_there(void) { return symbol() != 0; }

static bool find(void)
{
    uint64_t object, words[512];
    const size_t most = sizeof words / sizeof *words;
    if (read_words(symbol(), 1, &object) != 1)
        return false;
    for (size_t from = 0; from < OBJECT_WORDS; from += most - 2) { /* a vector has three */
        size_t count = read_words(object + from * sizeof *words, most, words);
        for (size_t i = 0; i + 3 <= count; i++)
            if (look_at_vector(words + i))
                return true;
        if (count < most)
            break;
    }
    return false;
}

bool prb_cuda_allocator_look(void)
{
    if (over || atomic_flag_test_and_set(&looking))
        return false;
    if (all.count)
        add_used();
    bool there = all.count || find();
    atomic_flag_clear(&looking);
    return there;
}

void prb_cuda_memory_add(size_t devices, struct prb_cuda_memory *out)
{
    *out = (struct prb_cuda_memory){0};
    for (size_t i = 0; i < devices; i++) {
        const volatile int64_t *allocated = prb_cuda_counters.devices[i] + ALLOCATED_BYTES * ARRAY;
        const volatile int64_t *reserved = prb_cuda_counters.devices[i] + RESERVED_BYTES * ARRAY;
        out->allocated += allocated[CURRENT];
        out->max_allocated += allocated[PEAK];
        out->reserved += reserved[CURRENT];
        out->max_reserved += reserved[PEAK];
    }
}

/* What it has of the allocator stays as it was: nobody allocates there. */
void prb_cuda_allocator_forked(void)
{
    atomic_flag_clear(&looking);
    memset(&all, 0, sizeof all);
    atomic_store(&prb_cuda_counters.count, 0);
}
