/* The heap of a statement. */
#include "table/shared/heap.h"

static void *make(struct prb_target *target, struct prb_error *err)
{
    return prb_heap_take(target, err);
}

static void release(void *heap) { prb_heap_free(heap); }

struct prb_heap *prb_rows_heap(struct prb_rows *rows, struct prb_error *err)
{
    if (!prb_rows_stacks(rows, err)) /* which interpreters there are */
        return NULL;
    struct prb_heap *heap = prb_rows_shared(rows, make, release, err);
    if (heap && heap->why)
        prb_rows_warn(rows, "some objects may be missing: %s", heap->why);
    return heap;
}

struct prb_heap *prb_rows_modules(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_heap *heap = prb_rows_heap(rows, err);
    return heap && prb_heap_modules(heap, err) ? heap : NULL;
}
