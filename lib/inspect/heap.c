/* The collectors' objects, interpreter by interpreter. */
#include "inspect/heap.h"

#include "base/hash_map.h"
#include "proc/proc.h"
#include "py/object/reader.h"

void prb_heap_free(struct prb_heap *heap)
{
    if (!heap)
        return;
    for (size_t i = 0; i < heap->part_count; i++)
        prb_gc_objects_deinit(&heap->parts[i].found);
    free(heap->parts);
    free(heap->modules);
    prb_arena_deinit(&heap->arena);
    free(heap);
}
PRB_DEFINE_AUTO_PTR(prb_heap, struct prb_heap, prb_heap_free)

/* Of a snapshot, whose pages are those that stacks and locals needed. */
static bool left_out(struct prb_error *err)
{
    prb_fail(err, PRB_UNSUPPORTED, "this snapshot was taken without the collector's objects");
    return prb_error_remedy(err, "ask the process itself, or a core of it");
}

/* The types of the objects, which whoever takes them asks for. */
static bool read_types(const struct prb_heap_part *part, struct prb_error *err)
{
    PRB_AUTO(prb_hash_map) struct prb_hash_map seen = {0};
    PRB_AUTO_FREE prb_addr *types = NULL;
    size_t count = 0, cap = 0;
    for (size_t i = 0; i < part->found.count; i++) {
        prb_addr type = part->found.items[i].type;
        struct prb_hash_slot *slot = prb_hash_map_add(&seen, type);
        if (!slot || !PRB_GROW(types, count, cap))
            return prb_nomem(err);
        if (!slot->number++)
            types[count++] = type;
    }
    prb_types_read(part->runtime->objects, types, count);
    return true;
}

static bool take_runtime(struct prb_heap *heap, struct prb_target *target,
                         const struct prb_runtime *runtime, size_t *cap, struct prb_error *err)
{
    const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
    bool live = prb_proc_live(target->proc);
    if (live)
        prb_objects_clear(runtime->objects);
    prb_objects_expect_all(runtime->objects);
    for (size_t i = 0; i < raw->interpreter_count; i++) {
        if (!PRB_GROW(heap->parts, heap->part_count, *cap))
            return prb_nomem(err);
        struct prb_heap_part *part = &heap->parts[heap->part_count];
        *part = (struct prb_heap_part){.runtime = runtime, .interpreter = raw->interpreters[i].id};
        if (!prb_gc_take(runtime->py, raw->interpreters[i].addr, part->interpreter == 0, live,
                         &part->found, err))
            return target->info.kind == PRB_TARGET_SNAPSHOT ? left_out(err) : false;
        heap->part_count++;
        if (!part->found.whole && target->info.kind == PRB_TARGET_SNAPSHOT)
            return left_out(err);
        if (!read_types(part, err))
            return false;
        if (!part->found.whole)
            heap->why = part->found.why;
    }
    return true;
}

struct prb_heap *prb_heap_take(struct prb_target *target, struct prb_error *err)
{
    PRB_AUTO(prb_heap) struct prb_heap *heap = calloc(1, sizeof *heap);
    size_t cap = 0;
    if (!heap)
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 0; i < target->runtime_count; i++)
        if (!take_runtime(heap, target, &target->runtimes[i], &cap, err))
            return NULL;
    return PRB_STEAL(heap);
}
