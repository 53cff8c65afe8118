/*
 * Which thread collects garbage: the one on whose native stack the collector's list of garbage
 * begins.
 *
 * gc.collecting says only that some thread does.  That one has the GIL until it runs a finalizer or
 * the callback of a weak reference, which may let it go; so the GIL does not show it.  Meanwhile
 * the objects to be freed are in a list whose head is a variable of the collector
 * (Modules/gcmodule.c up to 3.12, Python/gc.c from 3.13: unreachable, seen, final_unreachable): two
 * words of its stack that lead to an object's head and from there back.
 */
#include <string.h>

#include "py/gc.h"

#define FLAGS 7ull           /* lowest bits of links that are not the address */
#define TYPE_SUBCLASS_BIT 31 /* Py_TPFLAGS_TYPE_SUBCLASS */
#define ADDRESSES_MIN 4096ull
#define ADDRESSES_MAX (1ull << 48)

static bool may_be_head(uint64_t word)
{
    return word >= ADDRESSES_MIN && word < ADDRESSES_MAX && word % 8 == 0;
}

/* Whether an object with a type stands behind a PyGC_Head, whose size depends on the build
 * (gc.c). */
static bool object_follows(struct prb_py *py, prb_addr head)
{
    const int32_t sizes[] = {PRB_OFF(&py->layout, gc_head, size), 24, 32};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t type, meta, flags;
        if (PRB_FIELD_OF(py, head + (prb_addr)sizes[i], object, type, &type, NULL) &&
            PRB_FIELD_OF(py, type, object, type, &meta, NULL) &&
            PRB_FIELD_OF(py, meta, type, flags, &flags, NULL) && flags >> TYPE_SUBCLASS_BIT & 1)
            return true;
    }
    return false;
}

/* links: the two words at a place of the stack. */
static bool is_list_of_objects(struct prb_py *py, prb_addr place, const uint64_t links[2])
{
    uint64_t first[2], last[2];
    prb_addr next = links[0] & ~FLAGS, prev = links[1] & ~FLAGS;
    return next != place && may_be_head(next) && may_be_head(prev) &&
           prb_mem_read(py->mem, next, first, sizeof first, NULL) && (first[1] & ~FLAGS) == place &&
           prb_mem_read(py->mem, prev, last, sizeof last, NULL) && (last[0] & ~FLAGS) == place &&
           object_follows(py, next);
}

bool prb_gc_on_stack(struct prb_py *py, prb_addr sp, prb_addr pthread)
{
    PRB_AUTO_FREE uint64_t *words = malloc(PRB_GC_STACK_MAX);
    if (!words || !PRB_HAS(&py->layout, gc_head, size))
        return false;
    sp &= ~7ull;
    /* struct pthread lies above the stack that pthread_create(3) made, anything behind it. */
    size_t size = pthread > sp && pthread - sp < PRB_GC_STACK_MAX ? pthread - sp : PRB_GC_STACK_MAX;
    size_t count = prb_mem_read_some(py->mem, sp, words, size) / sizeof *words;
    for (size_t i = 0; i + 1 < count; i++)
        if (is_list_of_objects(py, sp + i * sizeof *words, words + i))
            return true;
    return false;
}
