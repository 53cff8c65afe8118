/*
 * The objects that the garbage collector knows, found by its own lists, without running code.
 *
 * Containers, instances and most other objects that refer to others are there; ints, texts, numpy
 * arrays and tuples of such are not.  A live target runs meanwhile: each list is walked again until
 * it is whole, at most a bounded number of times; lists that were not whole are reported.
 */
#ifndef PRB_PY_GC_H
#define PRB_PY_GC_H

#include "py/py.h"

#define PRB_GC_PROGRESS 65536       /* objects from one report of progress to the next */
#define PRB_GC_OBJECTS_MAX 16000000 /* of one interpreter: bounds the tool's memory */

struct prb_gc_object {
    prb_addr object, type;
    uint8_t generation; /* 0: the youngest; PRB_GC_PERMANENT: put away by gc.freeze() */
};
enum { PRB_GC_GENERATIONS = 3, PRB_GC_PERMANENT = 3 };

struct prb_gc_objects {
    struct prb_gc_object *items; /* each object once */
    size_t count;
    bool whole;      /* every list was followed to its end, back and forth alike */
    const char *why; /* what is missing, or NULL */
};

/*
 * The tracked objects of an interpreter (the process's, where all share one collector: ≤3.8, of
 * which only the main interpreter has any here).  main: whether it is that one; live: whether the
 * target goes on.  Errors: UNSUPPORTED (free-threaded: no lists), CORRUPT (the lists are not where
 * this version keeps them), FAULT.
 * Source: Modules/gcmodule.c, Python/gc.c, Include/internal/pycore_gc.h.
 */
bool prb_gc_take(struct prb_py *py, prb_addr interpreter, bool main, bool live,
                 struct prb_gc_objects *out, struct prb_error *err);
void prb_gc_objects_deinit(struct prb_gc_objects *objects);
PRB_DEFINE_AUTO(prb_gc_objects, struct prb_gc_objects, prb_gc_objects_deinit)

/* Whether the thread with this stack pointer and pthread_self() is within a collection that runs
 * a finalizer or a callback: looked for in so many bytes of its stack (gc_stack.c).  Always
 * false where the collector has no lists (free-threaded). */
#define PRB_GC_STACK_MAX 32768
bool prb_gc_on_stack(struct prb_py *py, prb_addr sp, prb_addr pthread);

#endif
