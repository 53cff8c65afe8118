/*
 * Who allocates: sampled allocations of the program, its Python objects and its native blocks.
 *
 * HOW.  Each thread counts allocated bytes down; below 0 the block is a sample, and a new distance
 * is drawn, exponential with the mean `period`.  So a block of s bytes is sampled with the
 * probability p = 1 - e^(-s/period), and a sample stands for s / p bytes and 1 / p blocks: sums
 * have no bias, whatever the sizes.  The period adapts, so that a bounded number of samples is taken
 * in a second.  Sampled blocks are known until they are freed, by a filter that every free looks at.
 *
 * WHERE.  python_hooks.c wraps Python's allocators of objects and memory, with the GIL.
 * libraries.c changes the slots by which libraries call malloc(3) and the like to native_hooks.c.
 * A block is counted once, by the outermost of nested calls.
 *
 * WHAT IS KEPT.  record.c adds samples up by site (stack), thread and interval in a region of
 * memory that the tool reads from outside (lib/allocation/region.h), and gives the names there.
 *
 * CARE.  Everything here runs within the program's allocations: nothing allocates, waits but for one
 * short lock, or calls Python.  A child of fork(2) has the hooks, but its words are wiped: they let
 * everything pass.
 */
#ifndef PRB_PROBE_MEMORY_MEMORY_H
#define PRB_PROBE_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocation/region.h"
#include "base/error.h"

struct prb_py_api;

/* ---- the fast path, within each allocation and each free ---- */

#define PRB_MEMORY_FILTER_BITS 19 /* 64 KiB: it has to stay in the CPU's caches */

/* Pages of their own, whatever their size: a child of fork(2) finds zeros here, and nothing beside it is wiped. */
#ifdef __aarch64__
#define PRB_MEMORY_PAGE 65536
#else
#define PRB_MEMORY_PAGE 4096
#endif
struct prb_memory_words {
    uint64_t filter[(1u << PRB_MEMORY_FILTER_BITS) / 64]; /* by address: a sample may have it */
    uint32_t epoch; /* 0: off; another one when the period changed */
} __attribute__((aligned(PRB_MEMORY_PAGE)));
extern struct prb_memory_words prb_memory_words;

/*
 * Of a thread.  The library has no thread-local storage: a static block of it may be full, and then
 * the library could not be loaded; any other is allocated at its first use.  So threads are found by
 * their thread pointer.  One that ended may leave its state to the next with that pointer.
 */
struct prb_memory_thread {
    uintptr_t pointer; /* 0: nobody's */
    int64_t left;      /* bytes until the next sample */
    uint32_t epoch;    /* when that was drawn, and … */
    float period;      /* … from which mean */
    uint8_t depth;     /* within a hook: what it calls does not count again */
    uint8_t locked;    /* within the record */
} __attribute__((aligned(64)));
#define PRB_MEMORY_THREADS_BITS 11
extern struct prb_memory_thread prb_memory_threads[1u << PRB_MEMORY_THREADS_BITS];

struct prb_memory_thread *prb_memory_find(uintptr_t pointer);
/* The builtin function is of GCC 11 there; the word at the thread pointer is itself (x86-64 psABI,
 * TLS). */
static inline uintptr_t prb_memory_thread_pointer(void)
{
#ifdef __x86_64__
    uintptr_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return (uintptr_t)__builtin_thread_pointer();
#endif
}
/* NULL: there are too many. */
static inline struct prb_memory_thread *prb_memory_here(void)
{
    uintptr_t pointer = prb_memory_thread_pointer();
    struct prb_memory_thread *here = &prb_memory_threads[pointer * UINT64_C(0x9e3779b97f4a7c15) >>
                                                         (64 - PRB_MEMORY_THREADS_BITS)];
    return __builtin_expect(here->pointer == pointer, 1) ? here : prb_memory_find(pointer);
}

static inline uint32_t prb_memory_place(const void *block)
{
    return (uint32_t)(((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >>
                      (64 - PRB_MEMORY_FILTER_BITS));
}

/* Before the allocation itself; NULL: it does not count, as it is within another one. */
static inline struct prb_memory_thread *prb_memory_enter(void)
{
    struct prb_memory_thread *here = prb_memory_here();
    if (!here || here->depth)
        return NULL;
    here->depth = 1;
    return here;
}

/* A thread's distance is over, or was drawn in another epoch (record.c). */
void prb_memory_take(struct prb_memory_thread *here, void *block, size_t size,
                     enum prb_allocation_kind kind, const void *caller);
/* After it.  caller: where the hook returns to; NULL: Python's allocator. */
static inline void prb_memory_leave(struct prb_memory_thread *here, void *block, size_t size,
                                    enum prb_allocation_kind kind, const void *caller)
{
    here->depth = 0;
    if (!block)
        return;
    here->left -= (int64_t)size;
    if (__builtin_expect(here->left < 0 || here->epoch != prb_memory_words.epoch, 0))
        prb_memory_take(here, block, size, kind, caller);
}

/* A sample that was freed, as it was taken. */
struct prb_memory_sample {
    uint64_t block, size; /* block 0: there is no such sample */
    float period;
    uint32_t site, thread, second; /* second: since the record began */
};

struct prb_memory_sample prb_memory_forget_slow(const void *block);
/* Before a block is freed or moved. */
static inline struct prb_memory_sample prb_memory_forget(const void *block)
{
    uint32_t place = prb_memory_place(block);
    if (__builtin_expect(!(prb_memory_words.filter[place / 64] >> place % 64 & 1), 1))
        return (struct prb_memory_sample){0};
    return prb_memory_forget_slow(block);
}
/* It was not, after all. */
void prb_memory_restore(const struct prb_memory_sample *sample);

/* ---- record.c ---- */

struct prb_memory_limits {
    double period;  /* bytes, at first */
    double samples; /* a second, at most */
};

/* Begin a new record.  Errors: NOMEM, UNSUPPORTED (no memfd_create(2)). */
bool prb_memory_record_begin(const struct prb_memory_limits *limits, struct prb_error *err);
/* No samples from now on; the record can be read until the next one begins. */
void prb_memory_record_end(void);
void prb_memory_record_limit(const struct prb_memory_limits *limits);
/* Once a second: the period follows the rate. */
void prb_memory_record_adapt(void);
/* What is hooked, for the answer.  why: why Python is not; NULL or "": it is, or there is none. */
void prb_memory_record_hooked(bool python, const char *why, unsigned libraries);
/* It is not read any more. */
void prb_memory_record_free(void);
void prb_memory_record_forked(void);

/* ---- frames.c ---- */

/* With the GIL: find how this interpreter keeps its frames, and prove it on a frame that we make. */
bool prb_memory_frames_find(const struct prb_py_api *py, struct prb_error *err);
/* The calling thread's frames, the innermost first, at most PRB_SITE_FRAMES_MAX; *cut_out: it has
 * more.  python: it has the GIL. */
uint32_t prb_memory_frames(bool python, struct prb_site_frame *out, bool *cut_out);

/* ---- python_hooks.c ---- */

/* With the GIL. */
bool prb_memory_python_put(const struct prb_py_api *py, struct prb_error *err);
void prb_memory_python_take_out(const struct prb_py_api *py);

/* ---- libraries.c: on the part's thread alone ---- */

/* Hook what is not hooked yet: at first, and then once a second.  Returns how many libraries are. */
unsigned prb_memory_native_put(void);
void prb_memory_native_take_out(void);
/* Whether an address is torch's CPU allocator's. */
bool prb_memory_is_torch(const void *caller);
void prb_memory_native_forked(void);

/* ---- random.c: no libm in the probe ---- */

/* The next number of a generator, whose state is not 0. */
uint64_t prb_memory_random(uint64_t *state);
/* An exponential number with mean 1. */
double prb_memory_exponential(uint64_t *state);
/* 1 - e^(-x), x >= 0. */
double prb_memory_chance(double x);

#endif
