/* torch.tensors: every torch tensor that the garbage collector knows. */
#include <string.h>

#include "py/object/reader.h"
#include "table/shared/heap.h"
#include "table/shared/tensor_columns.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    {"interpreter", PRB_INTEGER, "id", "whose it is; 0: the main one"},
    {"address", PRB_INTEGER, "addr", "of the Python object"},
    {"type", PRB_TEXT, "", "\"torch.Tensor\", \"torch.nn.parameter.Parameter\", ..."},
    PRB_TENSOR_COLUMNS,
    {"stride", PRB_TEXT, "",
     "elements from one index of a dimension to the next, \"[128, 1]\"; NULL: not strided"},
    {"contiguous", PRB_INTEGER, "", "1: row by row without gaps"},
    {"is_leaf", PRB_INTEGER, "", "1: no recorded operation made it"},
    {"has_grad", PRB_INTEGER, "", "1: it has a gradient"},
    {"data", PRB_INTEGER, "addr", "of its first element, on its device; NULL: there is none"},
    {"storage_offset", PRB_INTEGER, "bytes", "from the start of the storage to the first element"},
    PRB_STATISTICS_COLUMNS,
    {"error", PRB_TEXT, "", "why a value is NULL"},
    PRB_STATISTICS_ARGUMENT,
    {0},
};

static void add_stride(struct prb_rows *rows, const struct prb_tensor *tensor)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (strcmp(tensor->layout, "strided") != 0 || !tensor->item_size) {
        prb_row_null(rows);
        return;
    }
    prb_buf_addc(&text, '[');
    for (unsigned i = 0; i < tensor->dims; i++)
        prb_buf_addf(&text, "%s%lld", i ? ", " : "",
                     (long long)(tensor->stride[i] / (int64_t)tensor->item_size));
    prb_buf_addc(&text, ']');
    prb_row_text(rows, prb_buf_ok(&text) ? text.data : NULL);
}

static void add_rest(struct prb_rows *rows, const struct prb_tensor *tensor)
{
    for (int i = 0; i < 6 && !tensor; i++)
        prb_row_null(rows);
    if (!tensor)
        return;
    add_stride(rows, tensor);
    prb_row_int(rows, tensor->contiguous);
    prb_row_int(rows, tensor->is_leaf);
    prb_row_int(rows, tensor->grad != 0);
    prb_row_int_unless(rows, (int64_t)tensor->data, 0);
    prb_row_int(rows, tensor->storage_offset);
}

static void add_tensor(struct prb_rows *rows, const struct prb_heap_part *part, prb_addr object,
                       struct prb_object_type *type)
{
    struct prb_objects *objects = part->runtime->objects;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    struct prb_tensor tensor, *read = NULL;
    struct prb_error err = {0};
    char why[sizeof err.text];
    prb_type_full_name(objects, type, &name);
    if (prb_torch_read(objects, object, &tensor, &err))
        read = &tensor;
    prb_row_begin(rows);
    prb_row_int(rows, part->interpreter);
    prb_row_int(rows, (int64_t)object);
    prb_row_text(rows, name.data);
    prb_row_tensor(rows, read);
    add_rest(rows, read);
    prb_row_statistics(rows, part->runtime->py->mem, read, why, sizeof why);
    prb_row_text(rows, !read ? err.text : why[0] ? why : NULL);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_heap *heap = prb_rows_heap(rows, err);
    for (size_t i = 0; heap && i < heap->part_count; i++) {
        const struct prb_heap_part *part = &heap->parts[i];
        for (size_t k = 0; k < part->found.count; k++) {
            const struct prb_gc_object *object = &part->found.items[k];
            struct prb_object_type *type = prb_type_at(part->runtime->objects, object->type, NULL);
            if (type && type->kind == PRB_OBJ_TENSOR)
                add_tensor(rows, part, object->object, type);
        }
    }
    return heap && prb_proc_check(prb_rows_target(rows)->proc, err);
}

const struct prb_table prb_table_torch_tensors = {
    .schema = "torch",
    .name = "tensors",
    .doc = "the torch tensors that Python code holds",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
