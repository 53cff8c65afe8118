/* torch.parameters: parameters and buffers of all torch modules, by name. */
#include "table/shared/heap.h"
#include "table/shared/tensor_columns.h"
#include "table/shared/thread_columns.h"

#define KEY_MAX 200 /* characters of a parameter's own name */

static const struct prb_column columns[] = {
    {"interpreter", PRB_INTEGER, "id", "whose it is; 0: the main one"},
    {"name", PRB_TEXT, "", "as in model.named_parameters(), \"layers.0.weight\""},
    {"kind", PRB_TEXT, "", "\"parameter\" or \"buffer\""},
    {"root", PRB_INTEGER, "addr", "of the outermost module: torch.modules.address"},
    {"module", PRB_INTEGER, "addr", "of the module that has it: torch.modules.address"},
    {"address", PRB_INTEGER, "addr", "of the Python object: torch.tensors.address"},
    PRB_TENSOR_COLUMNS,
    {"has_grad", PRB_INTEGER, "", "1: it has a gradient"},
    PRB_STATISTICS_COLUMNS,
    {"grad_norm", PRB_REAL, "", "norm of its gradient, finite elements only; with_statistics"},
    {"grad_nan", PRB_INTEGER, "count",
     "NaN and infinite elements of its gradient; with_statistics"},
    {"error", PRB_TEXT, "", "why a value is NULL"},
    PRB_STATISTICS_ARGUMENT,
    {0},
};

struct walk {
    struct prb_rows *rows;
    const struct prb_heap *heap;
    const struct prb_module_node *node;
    const char *kind;
};

static void add_grad(struct walk *walk, const struct prb_tensor *tensor)
{
    const struct prb_runtime *runtime = walk->node->part->runtime;
    struct prb_statistics made;
    if (tensor && prb_rows_statistics(walk->rows) &&
        prb_grad_statistics(runtime->objects, runtime->py->mem, tensor, &made)) {
        prb_row_real_unless_nan(walk->rows, made.norm);
        prb_row_int(walk->rows, made.nan + made.inf);
        return;
    }
    prb_row_null(walk->rows);
    prb_row_null(walk->rows);
}

static bool add_parameter(void *context, prb_addr key, prb_addr value)
{
    struct walk *walk = context;
    struct prb_rows *rows = walk->rows;
    const struct prb_runtime *runtime = walk->node->part->runtime;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    struct prb_tensor tensor, *read = NULL;
    struct prb_error err = {0};
    char why[sizeof err.text];
    if (prb_object_kind(runtime->objects, value, NULL) != PRB_OBJ_TENSOR)
        return true; /* None: registered, but not there */
    if (walk->node->name[0])
        prb_buf_addf(&name, "%s.", walk->node->name);
    (void)prb_object_str(runtime->objects, key, KEY_MAX, &name, NULL);
    if (prb_torch_read(runtime->objects, value, &tensor, &err))
        read = &tensor;
    prb_row_begin(rows);
    prb_row_int(rows, walk->node->part->interpreter);
    prb_row_text(rows, name.data);
    prb_row_text(rows, walk->kind);
    prb_row_int(rows, (int64_t)walk->heap->modules[walk->node->root].object);
    prb_row_int(rows, (int64_t)walk->node->object);
    prb_row_int(rows, (int64_t)value);
    prb_row_tensor(rows, read);
    if (read)
        prb_row_int(rows, read->grad != 0);
    else
        prb_row_null(rows);
    prb_row_statistics(rows, runtime->py->mem, read, why, sizeof why);
    add_grad(walk, read);
    prb_row_text(rows, !read ? err.text : why[0] ? why : NULL);
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_heap *heap = prb_rows_modules(rows, err);
    bool whole = true;
    for (size_t i = 0; heap && i < heap->module_count; i++) {
        const struct prb_module_node *node = &heap->modules[i];
        struct prb_objects *objects = node->part->runtime->objects;
        struct walk walk = {rows, heap, node, "parameter"};
        whole &= !node->parameters ||
                 prb_dict_each(objects, node->parameters, add_parameter, &walk, NULL);
        walk.kind = "buffer";
        whole &=
            !node->buffers || prb_dict_each(objects, node->buffers, add_parameter, &walk, NULL);
    }
    if (!whole)
        prb_rows_warn(rows, "modules changed while they were read: some parameters are missing");
    return heap && prb_proc_check(prb_rows_target(rows)->proc, err);
}

const struct prb_table prb_table_torch_parameters = {
    .schema = "torch",
    .name = "parameters",
    .doc = "parameters and buffers of the torch modules; torch.parameters(1) with statistics",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
