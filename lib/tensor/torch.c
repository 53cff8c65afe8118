/*
 * torch: from the Python object to its TensorImpl, whose layout is private and drifts.  So a
 * reading counts only if it agrees with itself: the element count is the product of the sizes,
 * element type and device are known ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "py/object/reader.h"
#include "tensor/array.h"

/* ---- names ---- */

/* c10::ScalarType, by code */
static const char *const dtypes[] = {
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
    "bool",
    "qint8",
    "quint8",
    "qint32",
    "bfloat16",
    "quint4x2",
    "quint2x4",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bits16",
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e5m2fnuz",
    "float8_e4m3fnuz",
    "uint16",
    "uint32",
    "uint64",
    "uint1",
    "uint2",
    "uint3",
    "uint4",
    "uint5",
    "uint6",
    "uint7",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
};

/* c10::DeviceType, by code */
static const char *const devices[] = {
    "cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
    "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
    "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- places ---- */

/* c10::TensorImpl from its sizes on, the same from 1.13 to 2.13 */
enum {
    SIZES_COUNT = 0,
    SIZES_INLINE = 8, /* five sizes and five strides, or a pointer to 2n words */
    NUMEL = 96,
    DTYPE = 104,  /* uint16 */
    DEVICE = 106, /* int8 type, int8 index, bool known */
    IMPL_READ = 112,
    INLINE_MAX = 5,
};

/* What drifts: where THPVariable keeps the pointer, from the end of the object's head … */
static const struct {
    uint8_t impl;
    bool maybe_owned; /* c10::MaybeOwned: a flag before it; borrowed ones point to a Tensor that
                         points on */
} places[] = {
    {0, false}, /* 2.10+ */
    {8, true},  /* until 2.9 */
};

/* … and where the sizes are: behind the counts of references (8 or 16 bytes) and what points back
 * to Python (8 or 16). A wrong one has a pointer for the number of dimensions, or a type for the
 * number of elements. */
static const uint8_t size_offsets[] = {56, 64, 72};

static bool find_impl(struct prb_objects *objects, prb_addr body, size_t place, uint64_t *out)
{
    uint64_t flag;
    if (!prb_objects_words(objects, body + places[place].impl, out, 1))
        return false;
    if (places[place].maybe_owned) {
        if (!prb_objects_words(objects, body, &flag, 1))
            return false;
        if ((uint8_t)flag && !prb_objects_words(objects, *out, out, 1))
            return false;
    }
    return *out && *out % 8 == 0 && *out <= UINT64_MAX - 4096;
}

static uint64_t word(const uint8_t *impl, unsigned at)
{
    uint64_t value;
    memcpy(&value, impl + at, sizeof value);
    return value;
}

static bool read_sizes(struct prb_objects *objects, const uint8_t *impl, struct prb_array *out)
{
    uint64_t dims = word(impl, SIZES_COUNT);
    if (dims > PRB_ARRAY_DIMS_MAX)
        return false;
    if (dims <= INLINE_MAX)
        memcpy(out->shape, impl + SIZES_INLINE, 8 * dims);
    else if (!prb_objects_words(objects, word(impl, SIZES_INLINE), (uint64_t *)out->shape, dims))
        return false;
    out->dims = (unsigned)dims;
    int64_t product = 1;
    for (unsigned i = 0; i < out->dims; i++)
        if (out->shape[i] < 0 || __builtin_mul_overflow(product, out->shape[i], &product))
            return false;
    return product == (int64_t)word(impl, NUMEL);
}

static bool read_kinds(const uint8_t *impl, struct prb_array *out)
{
    uint16_t dtype;
    memcpy(&dtype, impl + DTYPE, sizeof dtype);
    int8_t device = (int8_t)impl[DEVICE], index = (int8_t)impl[DEVICE + 1];
    if (dtype >= COUNT(dtypes) || device < 0 || (size_t)device >= COUNT(devices) || index < -1 ||
        impl[DEVICE + 2] != 1)
        return false;
    snprintf(out->dtype, sizeof out->dtype, "%s", dtypes[dtype]);
    if (index < 0)
        snprintf(out->device, sizeof out->device, "%s", devices[device]);
    else
        snprintf(out->device, sizeof out->device, "%s:%d", devices[device], index);
    return true;
}

static bool read_at(struct prb_objects *objects, prb_addr sizes, struct prb_array *out)
{
    uint8_t impl[IMPL_READ];
    const void *bytes = prb_objects_get(objects, sizes, IMPL_READ);
    if (!bytes)
        return false;
    memcpy(impl, bytes, IMPL_READ);
    *out = (struct prb_array){0};
    return read_kinds(impl, out) && read_sizes(objects, impl, out);
}

bool prb_tensor_read(struct prb_objects *objects, prb_addr object, struct prb_array *out,
                     struct prb_error *err)
{
    prb_addr body = object + (uint64_t)PRB_OFF(objects->layout, object, size);
    for (size_t i = 0; i < COUNT(places); i++) {
        uint64_t impl;
        if (!find_impl(objects, body, i, &impl))
            continue;
        for (size_t k = 0; k < COUNT(size_offsets); k++) {
            struct prb_array found;
            if (read_at(objects, impl + size_offsets[k], &found)) {
                *out = found;
                return true;
            }
        }
    }
    return prb_fail(err, PRB_CORRUPT, "the tensor at 0x%" PRIx64 " contradicts itself", object);
}

/* ---- constants ---- */

enum { DTYPE_NAME = 1, DTYPE_NAME_MAX = 64 }; /* THPDtype: int8 code, char name[65] */

bool prb_torch_constant_read(struct prb_objects *objects, prb_addr object, const char *type_name,
                             struct prb_buf *out, struct prb_error *err)
{
    prb_addr body = object + (uint64_t)PRB_OFF(objects->layout, object, size);
    if (!strcmp(type_name, "torch.dtype")) {
        const char *name = prb_objects_cstring(objects, body + DTYPE_NAME, DTYPE_NAME_MAX);
        if (!name)
            return prb_fail_addr(err, object, "the dtype at 0x%" PRIx64 " cannot be read", object);
        prb_buf_addf(out, "torch.%s", name);
        return true;
    }
    if (!strcmp(type_name, "torch.device")) {
        const int8_t *bytes = prb_objects_get(objects, body, 2);
        if (!bytes || bytes[0] < 0 || (size_t)bytes[0] >= COUNT(devices))
            return prb_fail_addr(err, object, "the device at 0x%" PRIx64 " cannot be read", object);
        prb_buf_addf(out, "device(type='%s'", devices[bytes[0]]);
        if (bytes[1] >= 0)
            prb_buf_addf(out, ", index=%d", bytes[1]);
        prb_buf_addc(out, ')');
        return true;
    }
    return prb_fail(err, PRB_UNSUPPORTED, "%s is no constant that is known", type_name);
}
