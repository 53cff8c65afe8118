/* numpy: arrays of numpy 1 and 2, and their element types. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "py/object/reader.h"
#include "tensor/tensor.h"

/* Offsets from the end of the object's head. */
enum {
    ARRAY_DATA = 0,
    ARRAY_DIMS = 8,
    ARRAY_SHAPE = 16,
    ARRAY_STRIDES = 24,
    ARRAY_BASE = 32,
    ARRAY_DESCR = 40,
    ARRAY_FLAGS = 48,
};
enum { FLAG_OWN_DATA = 4 }; /* NPY_ARRAY_OWNDATA */
enum {
    DESCR_TYPE = 0,
    DESCR_KIND = 8,
    DESCR_BYTE_ORDER = 10,
    DESCR_ITEM_SIZE_1 = 16, /* int, numpy 1 */
    DESCR_ALIGNMENT_1 = 20, /* int, never 0; the upper half of the flags, always 0, in numpy 2 */
    DESCR_ITEM_SIZE_2 = 24, /* npy_intp, numpy 2 */
};
#define ITEM_SIZE_MAX (1ll << 40)

static prb_addr body(struct prb_objects *objects, prb_addr object)
{
    return object + (uint64_t)PRB_OFF(objects->layout, object, size);
}

static bool read_at(struct prb_objects *objects, prb_addr addr, void *out, size_t len)
{
    const void *bytes = prb_objects_get(objects, addr, len);
    if (bytes)
        memcpy(out, bytes, len);
    return bytes != NULL;
}

/* ---- element types ---- */

static bool item_size(struct prb_objects *objects, prb_addr descr, int64_t *out)
{
    int32_t alignment, size;
    if (!read_at(objects, descr + DESCR_ALIGNMENT_1, &alignment, 4))
        return false;
    if (!alignment)
        return read_at(objects, descr + DESCR_ITEM_SIZE_2, out, 8) && *out >= 0 &&
               *out < ITEM_SIZE_MAX;
    if (!read_at(objects, descr + DESCR_ITEM_SIZE_1, &size, 4))
        return false;
    *out = size;
    return size >= 0;
}

/* Types of other packages (bfloat16) go by the name of their class; numpy.void itself by its size.
 */
static void void_name(struct prb_objects *objects, prb_addr descr, int64_t size, char *out,
                      size_t cap)
{
    uint64_t class_at;
    struct prb_object_type *type = NULL;
    if (prb_objects_words(objects, descr + DESCR_TYPE, &class_at, 1))
        type = prb_type_at(objects, class_at, NULL);
    if (type && strcmp(type->name, "numpy.void"))
        snprintf(out, cap, "%.48s", prb_type_short_name(type));
    else
        snprintf(out, cap, "|V%" PRId64, size);
}

static bool dtype_name(struct prb_objects *objects, prb_addr array_descr, char *out, size_t cap)
{
    static const struct {
        char kind;
        const char *name;
        bool sized; /* followed by the item size in bits */
    } kinds[] = {
        {'b', "bool", false},       {'i', "int", true},          {'u', "uint", true},
        {'f', "float", true},       {'c', "complex", true},      {'O', "object", false},
        {'M', "datetime64", false}, {'m', "timedelta64", false},
    };
    prb_addr descr = body(objects, array_descr);
    uint8_t head[3];
    int64_t size;
    if (!read_at(objects, descr + DESCR_KIND, head, sizeof head) ||
        !item_size(objects, descr, &size))
        return false;
    char kind = (char)head[0], order = (char)head[DESCR_BYTE_ORDER - DESCR_KIND];
    if (kind == 'V' || kind == 'S') {
        if (kind == 'V')
            void_name(objects, descr, size, out, cap);
        else
            snprintf(out, cap, "|S%" PRId64, size);
        return true;
    }
    if (kind == 'U') {
        snprintf(out, cap, "%cU%" PRId64, order == '>' ? '>' : '<', size / 4);
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].kind != kind)
            continue;
        if (order == '>' && size > 1)
            snprintf(out, cap, ">%c%" PRId64, kind, size);
        else if (kinds[i].sized)
            snprintf(out, cap, "%s%" PRId64, kinds[i].name, size * 8);
        else
            snprintf(out, cap, "%s", kinds[i].name);
        return true;
    }
    return false;
}

bool prb_numpy_dtype_read(struct prb_objects *objects, prb_addr object, char out[64],
                          struct prb_error *err)
{
    return dtype_name(objects, object, out, 64) ||
           prb_fail(err, PRB_CORRUPT, "no readable numpy dtype at 0x%" PRIx64, object);
}

/* ---- arrays ---- */

struct head {
    uint64_t data, shape, strides, base, descr;
    int32_t dims, flags;
};

static bool read_head(struct prb_objects *objects, prb_addr object, struct head *out)
{
    prb_addr array = body(objects, object);
    uint8_t bytes[ARRAY_FLAGS + 4];
    if (!read_at(objects, array, bytes, sizeof bytes))
        return false;
    memcpy(&out->data, bytes + ARRAY_DATA, 8);
    memcpy(&out->dims, bytes + ARRAY_DIMS, 4);
    memcpy(&out->shape, bytes + ARRAY_SHAPE, 8);
    memcpy(&out->strides, bytes + ARRAY_STRIDES, 8);
    memcpy(&out->base, bytes + ARRAY_BASE, 8);
    memcpy(&out->descr, bytes + ARRAY_DESCR, 8);
    memcpy(&out->flags, bytes + ARRAY_FLAGS, 4);
    return out->dims >= 0 && out->dims <= PRB_TENSOR_DIMS_MAX;
}

static bool count_elements(struct prb_tensor *tensor)
{
    tensor->numel = 1;
    bool empty = false, good = true;
    for (unsigned i = 0; i < tensor->dims; i++) {
        empty |= tensor->shape[i] == 0;
        good &= tensor->shape[i] >= 0;
    }
    if (empty)
        tensor->numel = 0;
    for (unsigned i = 0; i < tensor->dims && !empty; i++)
        good = good && !__builtin_mul_overflow(tensor->numel, tensor->shape[i], &tensor->numel);
    return good;
}

/* Everything but what owns the elements. */
static bool read_array(struct prb_objects *objects, const struct head *head, struct prb_tensor *out)
{
    int64_t size = 0;
    size_t bytes = 8 * (size_t)head->dims;
    out->dims = (unsigned)head->dims;
    if ((bytes && !read_at(objects, head->shape, out->shape, bytes)) ||
        !dtype_name(objects, head->descr, out->dtype, sizeof out->dtype) ||
        !item_size(objects, body(objects, head->descr), &size) || !count_elements(out))
        return false;
    if (bytes && !read_at(objects, head->strides, out->stride, bytes))
        snprintf(out->unreadable, sizeof out->unreadable, "its strides cannot be read");
    out->item_size = size <= UINT32_MAX ? (unsigned)size : 0;
    out->data = head->data;
    return true;
}

/* What holds the elements: the array itself, or the array that it is a view of. */
static void find_storage(struct prb_objects *objects, const struct head *head,
                         struct prb_tensor *out)
{
    struct prb_tensor owner = {0};
    struct head base;
    out->storage_size = -1;
    if (head->flags & FLAG_OWN_DATA) {
        out->storage = out->data;
        out->storage_size = out->numel * out->item_size;
    } else if (head->base && prb_object_kind(objects, head->base, NULL) == PRB_OBJ_NDARRAY &&
               read_head(objects, head->base, &base) && base.flags & FLAG_OWN_DATA &&
               read_array(objects, &base, &owner)) {
        out->storage = owner.data;
        out->storage_size = owner.numel * owner.item_size;
    }
    out->storage_offset = out->storage ? (int64_t)(out->data - out->storage) : 0;
}

bool prb_ndarray_read(struct prb_objects *objects, prb_addr object, struct prb_tensor *out,
                      struct prb_error *err)
{
    struct prb_tensor found = {
        .object = object, .layout = "strided", .is_leaf = true, .version = -1};
    struct head head;
    if (!read_head(objects, object, &head) || !read_array(objects, &head, &found))
        return prb_fail(err, PRB_CORRUPT, "no readable numpy array at 0x%" PRIx64, object);
    find_storage(objects, &head, &found);
    prb_tensor_settle(&found);
    *out = found;
    return true;
}

bool prb_array_read(struct prb_objects *objects, prb_addr object, struct prb_tensor *out,
                    struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    if (!type)
        return false;
    if (type->kind == PRB_OBJ_TENSOR)
        return prb_torch_read(objects, object, out, err);
    if (type->kind == PRB_OBJ_NDARRAY)
        return prb_ndarray_read(objects, object, out, err);
    return prb_fail(err, PRB_UNSUPPORTED, "%s is neither a tensor nor an array", type->name);
}
