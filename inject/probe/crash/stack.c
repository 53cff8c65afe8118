/*
 * Alternate stacks, sigaltstack(2): only the thread itself can give itself one, and without one a
 * stack overflow ends the process before any handler runs.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "inject/probe/crash/crash.h"
#include "inject/probe/libc.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#define OWN_BYTES 65536   /* beyond what the kernel writes for a signal */
#define LEAST_BYTES 4096  /* the same, of one that somebody else made */
#define GUARD_BYTES 65536 /* a multiple of every page size */

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

static size_t frame_bytes(void)
{
    size_t bytes = (size_t)getauxval(AT_MINSIGSTKSZ);
    return bytes > 2048 ? bytes : 2048;
}

static size_t all_bytes(void)
{
    return GUARD_BYTES + (OWN_BYTES + frame_bytes() + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
}

/* At the thread's end: only what is still ours. */
static void give_back(void *base)
{
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || now.ss_sp != (char *)base + GUARD_BYTES ||
        (now.ss_flags & SS_ONSTACK))
        return;
    now.ss_flags = SS_DISABLE;
    if (sigaltstack(&now, NULL) == 0)
        munmap(base, all_bytes());
}

static void make_key(void) { have_key = pthread_key_create(&key, give_back) == 0; }

bool prb_crash_stack(void)
{
    stack_t now;
    if (sigaltstack(NULL, &now) != 0)
        return false;
    if (!(now.ss_flags & SS_DISABLE) && now.ss_size >= frame_bytes() + LEAST_BYTES)
        return true;
    pthread_once(&once, make_key);
    if (now.ss_flags & SS_ONSTACK || !have_key)
        return false;
    size_t bytes = all_bytes();
    char *base =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (base == MAP_FAILED)
        return false;
    const stack_t made = {.ss_sp = base + GUARD_BYTES, .ss_size = bytes - GUARD_BYTES};
    if (mprotect(base, GUARD_BYTES, PROT_NONE) == 0 && sigaltstack(&made, NULL) == 0) {
        pthread_setspecific(key, base);
        return true;
    }
    munmap(base, bytes);
    return false;
}
