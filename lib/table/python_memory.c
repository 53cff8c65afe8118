/* python.memory: memory_usage, and what Python and torch hold of it. */
#include <string.h>

#include "base/hash_map.h"
#include "inspect/heap.h"
#include "py/object/reader.h"
#include "table/shared/heap.h"
#include "table/shared/memory_columns.h"
#include "table/shared/torch_allocator.h"
#include "tensor/tensor.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    PRB_MEMORY_COLUMNS,
    {"gc_objects", PRB_INTEGER, "count",
     "that the garbage collector knows; NULL: a free-threaded build, which has no lists of them"},
    {"gc_young", PRB_INTEGER, "count", "of them, in the youngest generation"},
    {"gc_middle", PRB_INTEGER, "count", "in the middle one"},
    {"gc_old", PRB_INTEGER, "count", "in the oldest one, and those that gc.freeze() put away"},
    {"torch_cpu", PRB_REAL, "MB",
     "storages of the tensors that Python code holds, on the CPU, each once"},
    {"torch_gpu", PRB_REAL, "MB", "the same on other devices"},
    {"torch_allocated", PRB_REAL, "MB",
     "in tensors, by PyTorch's caching allocator of all CUDA devices, which a probe in the process "
     "asks; NULL: no probe, or the program has used no CUDA"},
    {"torch_reserved", PRB_REAL, "MB", "the same: what it has of the driver"},
    {"torch_peak", PRB_REAL, "MB", "the same: the most that was allocated, of each device"},
    {0},
};

struct counts {
    int64_t generation[PRB_GC_PERMANENT + 1];
    int64_t cpu, gpu; /* bytes */
    struct prb_hash_map storages;
};

static void add_tensor(struct counts *counts, struct prb_objects *objects, prb_addr object)
{
    struct prb_tensor tensor;
    if (!prb_torch_read(objects, object, &tensor, NULL) || !tensor.storage ||
        tensor.storage_size <= 0)
        return;
    struct prb_hash_slot *slot = prb_hash_map_add(&counts->storages, tensor.storage);
    if (!slot || slot->number)
        return;
    slot->number = 1;
    if (!strcmp(tensor.device, "cpu"))
        counts->cpu += tensor.storage_size;
    else
        counts->gpu += tensor.storage_size;
}

static void count_part(const struct prb_heap_part *part, bool tensors, struct counts *counts)
{
    struct prb_objects *objects = part->runtime->objects;
    for (size_t i = 0; i < part->found.count; i++) {
        const struct prb_gc_object *object = &part->found.items[i];
        if (object->generation <= PRB_GC_PERMANENT)
            counts->generation[object->generation]++;
        struct prb_object_type *type = tensors ? prb_type_at(objects, object->type, NULL) : NULL;
        if (type && type->kind == PRB_OBJ_TENSOR)
            add_tensor(counts, objects, object->object);
    }
}

static void add_heap(struct prb_rows *rows)
{
    struct counts counts = {0};
    struct prb_error why = {0};
    bool tensors = prb_rows_wants(rows, "torch_cpu") || prb_rows_wants(rows, "torch_gpu");
    struct prb_heap *heap = prb_rows_heap(rows, &why);
    if (!heap && why.code != PRB_UNSUPPORTED)
        prb_rows_warn(rows, "objects are not counted: %s", why.text);
    for (size_t i = 0; heap && i < heap->part_count; i++)
        count_part(&heap->parts[i], tensors, &counts);
    const int64_t *of = counts.generation;
    int64_t old = of[2] + of[PRB_GC_PERMANENT];
    prb_row_int_unless(rows, heap ? of[0] + of[1] + old : -1, -1);
    prb_row_int_unless(rows, heap ? of[0] : -1, -1);
    prb_row_int_unless(rows, heap ? of[1] : -1, -1);
    prb_row_int_unless(rows, heap ? old : -1, -1);
    prb_row_mb(rows, heap && tensors ? counts.cpu : -1);
    prb_row_mb(rows, heap && tensors ? counts.gpu : -1);
    prb_hash_map_deinit(&counts.storages);
}

static bool wants_any(const struct prb_rows *rows, const char *const *names)
{
    for (; *names; names++)
        if (prb_rows_wants(rows, *names))
            return true;
    return false;
}

static void add_allocator(struct prb_rows *rows)
{
    struct prb_torch_allocator allocator;
    prb_torch_allocator_ask(rows, &allocator);
    prb_row_mb(rows, allocator.allocated);
    prb_row_mb(rows, allocator.reserved);
    prb_row_mb(rows, allocator.peak);
}

/* The walk over all objects is left out where nothing of it is asked for; so is the probe. */
static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    static const char *const of_heap[] = {"gc_objects", "gc_young",  "gc_middle", "gc_old",
                                          "torch_cpu",  "torch_gpu", NULL};
    static const char *const of_allocator[] = {"torch_allocated", "torch_reserved", "torch_peak",
                                               NULL};
    if (!prb_row_memory(rows, err))
        return false;
    if (wants_any(rows, of_heap))
        add_heap(rows);
    else
        prb_row_skip(rows, sizeof of_heap / sizeof *of_heap - 1);
    if (wants_any(rows, of_allocator))
        add_allocator(rows);
    return true;
}

const struct prb_table prb_table_python_memory = {
    .schema = "python",
    .name = "memory",
    .doc = "memory_usage, with the objects that Python's collector knows and what torch's tensors "
           "hold",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
