/* The texts of numpy's and torch's objects; lib/tensor reads them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "repr/parts.h"
#include "repr/writer.h"
#include "tensor/tensor.h"

static void add_type(struct prb_repr *repr, struct prb_object_type *type)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    prb_type_full_name(repr->objects, type, &name);
    prb_text_add(&repr->text, name.data ? name.data : "?");
}

#define ROW_ELEMENTS 20 /* of an item of an array that is shown in a list of items */

void prb_array_stride(const struct prb_tensor *array, struct prb_buf *out)
{
    int64_t unit = array->torch && array->item_size ? array->item_size : 1;
    prb_buf_addc(out, '(');
    for (unsigned i = 0; i < array->dims; i++)
        prb_buf_addf(out, "%s%" PRId64, i ? ", " : "", array->stride[i] / unit);
    prb_buf_adds(out, array->dims == 1 ? ",)" : ")");
}

void prb_array_value(struct prb_objects *objects, const struct prb_tensor *array,
                     struct prb_buf *out)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (prb_tensor_text_in(prb_objects_py(objects)->mem, array, 1, &text, NULL) && text.data)
        prb_buf_addf(out, " = %s", text.data);
}

bool prb_array_elements(struct prb_objects *objects, prb_addr object, uint64_t start,
                        uint64_t count, prb_raw_part_fn *each, void *context, struct prb_error *err)
{
    struct prb_tensor array, item;
    if (!prb_array_read(objects, object, &array, err))
        return false;
    for (uint64_t i = start; i < start + count; i++) {
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        char name[24], access[32];
        struct prb_error why = {0};
        snprintf(name, sizeof name, "%" PRIu64, i);
        snprintf(access, sizeof access, "[%s]", name);
        if (!prb_tensor_slice(&array, name, &item, err))
            return false;
        if (!prb_tensor_text_in(prb_objects_py(objects)->mem, &item, ROW_ELEMENTS, &text, &why))
            prb_buf_addf(&text, "<unreadable: %s>", why.text);
        struct prb_raw_part part = {.name = name, .access = access, .text = text.data};
        if (!each(context, &part))
            return true;
    }
    return true;
}

void prb_repr_array(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct prb_tensor array;
    if (!prb_array_read(repr->objects, object, &array, NULL)) {
        prb_repr_short(repr, object, type);
        return;
    }
    add_type(repr, type);
    prb_text_add(&repr->text, "(shape=(");
    for (unsigned i = 0; i < array.dims; i++)
        prb_text_addf(&repr->text, "%s%" PRId64, i ? ", " : "", array.shape[i]);
    prb_text_add(&repr->text, array.dims == 1 ? ",), dtype=" : "), dtype=");
    prb_text_add(&repr->text, array.dtype);
    if (*array.device) {
        prb_text_add(&repr->text, ", device=");
        prb_text_add(&repr->text, array.device);
    }
    prb_text_add(&repr->text, ")");
    if (array.numel == 1 && array.dims <= PRB_VALUE_DIMS) {
        PRB_AUTO(prb_buf) struct prb_buf value = {0};
        prb_array_value(repr->objects, &array, &value);
        prb_text_add(&repr->text, value.data ? value.data : "");
    }
}

void prb_repr_array_scalar(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    PRB_AUTO(prb_buf) struct prb_buf value = {0};
    if (!prb_scalar_read(repr->objects, object, type->name, &value, NULL) || !value.data) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_text_add(&repr->text, type->name);
    prb_text_add(&repr->text, "(");
    prb_text_add(&repr->text, value.data);
    prb_text_add(&repr->text, ")");
}

void prb_repr_torch_constant(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    PRB_AUTO(prb_buf) struct prb_buf value = {0};
    if (prb_torch_constant_read(repr->objects, object, type->name, &value, NULL) && value.data)
        prb_text_add(&repr->text, value.data);
    else
        prb_repr_short(repr, object, type);
}

void prb_repr_numpy_dtype(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    char name[64];
    if (!prb_numpy_dtype_read(repr->objects, object, name, NULL)) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_text_add(&repr->text, "dtype('");
    prb_text_add(&repr->text, name + (*name == '|')); /* as numpy leaves it out here */
    prb_text_add(&repr->text, "')");
}

/* Whether a type made in C stands on a base of that name. */
static bool stands_on(struct prb_objects *objects, struct prb_object_type *type, const char *name)
{
    if (type->python)
        return false;
    for (unsigned depth = 0; type && depth < PRB_BASES_MAX; depth++) {
        if (!strcmp(type->name, name))
            return true;
        type = type->base ? prb_type_at(objects, type->base, NULL) : NULL;
    }
    return false;
}

bool prb_is_numpy_dtype(struct prb_objects *objects, struct prb_object_type *type)
{
    return stands_on(objects, type, "numpy.dtype");
}

bool prb_is_array_scalar(struct prb_objects *objects, struct prb_object_type *type)
{
    return stands_on(objects, type, "numpy.generic");
}
