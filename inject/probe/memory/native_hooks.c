/*
 * What libraries call in place of malloc(3), mmap(2) and the like, while libraries.c has changed the
 * slots by which they call them.  A slot that somebody copied calls these for ever: they hand on
 * whatever they do not count.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inject/probe/memory/libraries.h"

#define CALLER __builtin_return_address(0)

/* torch's CPU allocator is known by the library that calls. */
static void counted(struct prb_memory_thread *here, void *block, size_t size, const void *caller)
{
    prb_memory_leave(here, block, size, PRB_ALLOCATION_NATIVE, caller);
}

static void *hook_malloc(size_t size)
{
    struct prb_memory_thread *here = prb_memory_enter();
    void *block = malloc(size);
    if (here)
        counted(here, block, size, CALLER);
    return block;
}

static void *hook_calloc(size_t count, size_t size)
{
    struct prb_memory_thread *here = prb_memory_enter();
    void *block = calloc(count, size);
    if (here)
        counted(here, block, count * size, CALLER);
    return block;
}

static void *hook_realloc(void *block, size_t size)
{
    struct prb_memory_sample before = prb_memory_forget(block);
    struct prb_memory_thread *here = prb_memory_enter();
    void *moved = realloc(block, size);
    if (!moved && size)
        prb_memory_restore(&before);
    if (here)
        counted(here, moved, size, CALLER);
    return moved;
}

/* glibc 2.26 has it; older ones are to load this library. */
static void *hook_reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return hook_realloc(block, bytes);
}

static void hook_free(void *block)
{
    prb_memory_forget(block);
    free(block);
}

static int hook_posix_memalign(void **out, size_t alignment, size_t size)
{
    struct prb_memory_thread *here = prb_memory_enter();
    int failed = posix_memalign(out, alignment, size);
    if (here)
        counted(here, failed ? NULL : *out, size, CALLER);
    return failed;
}

static void *hook_aligned_alloc(size_t alignment, size_t size)
{
    struct prb_memory_thread *here = prb_memory_enter();
    void *block = aligned_alloc(alignment, size);
    if (here)
        counted(here, block, size, CALLER);
    return block;
}

static void *hook_memalign(size_t alignment, size_t size)
{
    struct prb_memory_thread *here = prb_memory_enter();
    void *block = memalign(alignment, size);
    if (here)
        counted(here, block, size, CALLER);
    return block;
}

/* What is only reserved (PROT_NONE), or a file's, is no memory that the program allocates. */
static void *hook_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    struct prb_memory_thread *here = prb_memory_enter();
    void *block = mmap(at, size, protection, flags, fd, offset);
    bool counts = block != MAP_FAILED && (flags & MAP_ANONYMOUS) && protection != PROT_NONE;
    if (here)
        counted(here, counts ? block : NULL, size, CALLER);
    return block;
}

static int hook_munmap(void *block, size_t size)
{
    struct prb_memory_sample before = prb_memory_forget(block);
    int failed = munmap(block, size);
    if (failed || size < before.size)
        prb_memory_restore(&before);
    return failed;
}

#define HOOK(name, function) {#name, (uintptr_t)(function), {0, 0}}
struct prb_memory_function prb_memory_functions[] = {
    HOOK(malloc, hook_malloc),
    HOOK(calloc, hook_calloc),
    HOOK(realloc, hook_realloc),
    HOOK(reallocarray, hook_reallocarray),
    HOOK(free, hook_free),
    HOOK(posix_memalign, hook_posix_memalign),
    HOOK(aligned_alloc, hook_aligned_alloc),
    HOOK(memalign, hook_memalign),
    HOOK(mmap, hook_mmap),
    HOOK(mmap64, hook_mmap),
    HOOK(munmap, hook_munmap),
};
const unsigned prb_memory_function_count =
    sizeof prb_memory_functions / sizeof *prb_memory_functions;
