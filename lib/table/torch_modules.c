/* torch.modules: the tree of torch modules, with what its parameters come to. */
#include <stdio.h>
#include <string.h>

#include "table/shared/heap.h"
#include "table/shared/thread_columns.h"
#include "tensor/tensor.h"

static const struct prb_column columns[] = {
    {"interpreter", PRB_INTEGER, "id", "whose it is; 0: the main one"},
    {"name", PRB_TEXT, "", "as in model.named_modules(), \"layers.0\"; \"\" for a root"},
    {"type", PRB_TEXT, "", "its class, \"torch.nn.modules.linear.Linear\""},
    {"address", PRB_INTEGER, "addr", "of the Python object"},
    {"parent", PRB_INTEGER, "addr", "of the module that has it; NULL: a root"},
    {"root", PRB_INTEGER, "addr", "of the outermost module"},
    {"depth", PRB_INTEGER, "count", "0: a root"},
    {"children", PRB_INTEGER, "count", "modules right below it"},
    {"training", PRB_INTEGER, "", "1: train(), 0: eval()"},
    {"parameters", PRB_INTEGER, "count", "elements of its own parameters"},
    {"parameters_total", PRB_INTEGER, "count",
     "with all modules below it; shared parameters count once"},
    {"trainable_total", PRB_INTEGER, "count", "of those, the ones that require a gradient"},
    {"bytes_total", PRB_INTEGER, "bytes", "of all those parameters"},
    {"dtype", PRB_TEXT, "", "of all those parameters, or \"mixed\"; NULL: it has none"},
    {"device", PRB_TEXT, "", "of all those parameters, or \"mixed\"; NULL: it has none"},
    {0},
};

/* A parameter of a module. */
struct parameter {
    size_t module; /* in the tree's order */
    prb_addr object;
    int64_t numel, bytes;
    bool trainable;
    char dtype[24], device[24];
};

struct all {
    struct parameter *items;
    size_t count, cap;
    struct prb_objects *objects;
    size_t module;
    bool failed;
};

static bool take(void *context, prb_addr key, prb_addr value)
{
    (void)key;
    struct all *all = context;
    struct prb_tensor tensor;
    if (prb_object_kind(all->objects, value, NULL) != PRB_OBJ_TENSOR ||
        !prb_torch_read(all->objects, value, &tensor, NULL))
        return true;
    if (!PRB_GROW(all->items, all->count, all->cap)) {
        all->failed = true;
        return false;
    }
    struct parameter *parameter = &all->items[all->count++];
    *parameter = (struct parameter){.module = all->module,
                                    .object = value,
                                    .numel = tensor.numel,
                                    .trainable = tensor.requires_grad};
    if (__builtin_mul_overflow(tensor.numel, (int64_t)tensor.item_size, &parameter->bytes))
        parameter->bytes = 0;
    snprintf(parameter->dtype, sizeof parameter->dtype, "%.23s", tensor.dtype);
    snprintf(parameter->device, sizeof parameter->device, "%.23s", tensor.device);
    return true;
}

static int by_object(const void *a, const void *b)
{
    const struct parameter *const *x = a, *const *y = b;
    return (*x)->object<(*y)->object ? -1 : (*x)->object>(*y)->object;
}

/* What the parameters of a module and of those below it come to. */
struct sums {
    int64_t own, total, trainable, bytes;
    const char *dtype, *device;
};

static const char *common(const char *so_far, const char *one)
{
    return !so_far || !strcmp(so_far, one) ? one : "mixed";
}

/* from: index of the first parameter of module i or later ones; sorted: room for all. */
static struct sums add_up(const struct all *all, const struct prb_heap *heap, size_t i, size_t from,
                          const struct parameter **sorted)
{
    struct sums sums = {0};
    size_t count = 0, last = i + heap->modules[i].below;
    for (size_t k = from; k < all->count && all->items[k].module <= last; k++) {
        sorted[count++] = &all->items[k];
        if (all->items[k].module == i)
            sums.own += all->items[k].numel;
    }
    qsort(sorted, count, sizeof *sorted, by_object);
    for (size_t k = 0; k < count; k++) {
        const struct parameter *one = sorted[k];
        if (k && sorted[k - 1]->object == one->object)
            continue;
        sums.total += one->numel;
        sums.trainable += one->trainable ? one->numel : 0;
        sums.bytes += one->bytes;
        sums.dtype = common(sums.dtype, one->dtype);
        sums.device = common(sums.device, one->device);
    }
    return sums;
}

static void add_module(struct prb_rows *rows, const struct prb_heap *heap, size_t i,
                       const struct sums *sums)
{
    const struct prb_module_node *node = &heap->modules[i];
    PRB_AUTO(prb_buf) struct prb_buf type = {0};
    (void)prb_object_type_name(node->part->runtime->objects, node->object, &type, NULL);
    prb_row_begin(rows);
    prb_row_int(rows, node->part->interpreter);
    prb_row_text(rows, node->name);
    prb_row_text(rows, type.data);
    prb_row_int(rows, (int64_t)node->object);
    prb_row_int_unless(rows, node->parent == i ? 0 : (int64_t)heap->modules[node->parent].object,
                       0);
    prb_row_int(rows, (int64_t)heap->modules[node->root].object);
    prb_row_int(rows, node->depth);
    prb_row_int(rows, node->children);
    prb_row_int_unless(rows, node->training, -1);
    prb_row_int(rows, sums->own);
    prb_row_int(rows, sums->total);
    prb_row_int(rows, sums->trainable);
    prb_row_int(rows, sums->bytes);
    prb_row_text(rows, sums->dtype);
    prb_row_text(rows, sums->device);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_heap *heap = prb_rows_modules(rows, err);
    struct all all = {0};
    for (size_t i = 0; heap && i < heap->module_count; i++) {
        all.objects = heap->modules[i].part->runtime->objects;
        all.module = i;
        if (heap->modules[i].parameters)
            (void)prb_dict_each(all.objects, heap->modules[i].parameters, take, &all, NULL);
    }
    const struct parameter **sorted = calloc(all.count + 1, sizeof *sorted);
    for (size_t i = 0, from = 0; heap && sorted && i < heap->module_count; i++) {
        while (from < all.count && all.items[from].module < i)
            from++;
        struct sums sums = add_up(&all, heap, i, from, sorted);
        add_module(rows, heap, i, &sums);
    }
    bool good = sorted && !all.failed;
    free(sorted);
    free(all.items);
    if (heap && !good)
        return prb_nomem(err);
    return heap && prb_proc_check(prb_rows_target(rows)->proc, err);
}

const struct prb_table prb_table_torch_modules = {
    .schema = "torch",
    .name = "modules",
    .doc = "the torch modules that Python code holds, as trees",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
