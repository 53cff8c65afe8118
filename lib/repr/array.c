/* The texts of numpy's and torch's objects; lib/tensor reads them. */
#include <inttypes.h>
#include <string.h>

#include "repr/writer.h"
#include "tensor/array.h"

static void add_type(struct prb_repr *repr, struct prb_object_type *type)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    prb_type_full_name(repr->objects, type, &name);
    prb_text_add(&repr->text, name.data ? name.data : "?");
}

void prb_repr_array(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct prb_array array;
    bool good = type->kind == PRB_OBJ_TENSOR
                    ? prb_tensor_read(repr->objects, object, &array, NULL)
                    : prb_ndarray_read(repr->objects, object, &array, NULL);
    if (!good) {
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
