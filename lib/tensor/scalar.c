/* The scalars of numpy that are objects of their own. */
#include <inttypes.h>
#include <string.h>

#include "py/object/reader.h"
#include "tensor/tensor.h"

static const struct {
    const char *name, *dtype;
} scalars[] = {
    {"numpy.int8", "int8"},
    {"numpy.int16", "int16"},
    {"numpy.int32", "int32"},
    {"numpy.int64", "int64"},
    {"numpy.longlong", "int64"},
    {"numpy.intc", "int32"},
    {"numpy.uint8", "uint8"},
    {"numpy.uint16", "uint16"},
    {"numpy.uint32", "uint32"},
    {"numpy.uint64", "uint64"},
    {"numpy.ulonglong", "uint64"},
    {"numpy.uintc", "uint32"},
    {"numpy.float16", "float16"},
    {"numpy.float32", "float32"},
    {"numpy.float64", "float64"},
    {"numpy.complex64", "complex64"},
    {"numpy.complex128", "complex128"},
    {"numpy.bool_", "bool"},
    {"numpy.bool", "bool"},
};

bool prb_scalar_read(struct prb_objects *objects, prb_addr object, const char *type_name,
                     struct prb_buf *out, struct prb_error *err)
{
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        if (strcmp(scalars[i].name, type_name))
            continue;
        struct prb_element_type type = {prb_dtype_find(scalars[i].dtype), false};
        const uint8_t *bytes = prb_objects_get(
            objects, object + (uint64_t)PRB_OFF(objects->layout, object, size), type.dtype->size);
        if (!bytes)
            return prb_fail_addr(err, object, "the scalar at 0x%" PRIx64 " cannot be read", object);
        struct prb_element number = prb_element_of(&type, bytes);
        prb_element_text(type.dtype, &number, out);
        return true;
    }
    return prb_fail(err, PRB_UNSUPPORTED, "%s is not a known scalar", type_name);
}
