/*
 * torch: from the Python object to its TensorImpl, whose layout is private and drifts.  So a
 * reading counts only if it agrees with itself: it points back to the object, the element count is
 * the product of the sizes, element type and device are known ones.  What drifts stands in two
 * tables, measured on the headers of every minor release from 1.13 to 2.13.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "py/object/reader.h"
#include "tensor/tensor.h"
#include "tensor/torch_places.h"

/* ---- names ---- */

/* c10::DeviceType, by code */
static const char *const devices[] = {
    "cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
    "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
    "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum {
    SPARSE_LAYOUT = 120 + 24
}; /* of at::SparseCsrTensorImpl, from its sizes on: behind three tensors */
/* 1.13 knew a backend less, and all keys stand a bit lower: of a dense tensor on the CPU this one.
 */
enum { DENSE_BIT_OF_113 = 14 };

/* Where the parts of a tensor are. */
struct torch {
    struct prb_objects *objects;
    prb_addr object; /* 0: there is only an implementation */
    prb_addr impl;
    const struct prb_torch_form *form;
    bool hooks; /* 2.1+: AutogradMeta has hooks that run after a gradient is accumulated */
    uint8_t bytes[PRB_TORCH_IMPL_READ]; /* from its sizes on */
};

static bool read_at(struct prb_objects *objects, prb_addr addr, void *out, size_t len)
{
    const void *bytes = prb_objects_get(objects, addr, len);
    if (bytes)
        memcpy(out, bytes, len);
    return bytes != NULL;
}

static uint64_t word(const struct torch *torch, unsigned at)
{
    uint64_t value;
    memcpy(&value, torch->bytes + at, sizeof value);
    return value;
}

static bool find_impl(struct prb_objects *objects, prb_addr body,
                      const struct prb_torch_place *place, uint64_t *out)
{
    uint64_t flag;
    if (!prb_objects_words(objects, body + place->impl, out, 1))
        return false;
    if (place->maybe_owned) {
        if (!prb_objects_words(objects, body, &flag, 1))
            return false;
        if ((uint8_t)flag && !prb_objects_words(objects, *out, out, 1))
            return false;
    }
    return *out && *out % 8 == 0 && *out <= UINT64_MAX - 4096;
}

/* ---- sizes ---- */

static bool read_shape(struct torch *torch, struct prb_tensor *out)
{
    uint64_t dims = word(torch, PRB_TORCH_SIZES_COUNT),
             outside = word(torch, PRB_TORCH_SIZES_INLINE);
    if (dims > PRB_TENSOR_DIMS_MAX)
        return false;
    out->dims = (unsigned)dims;
    if (dims <= PRB_TORCH_INLINE_MAX) {
        memcpy(out->shape, torch->bytes + PRB_TORCH_SIZES_INLINE, 8 * dims);
        memcpy(out->stride, torch->bytes + PRB_TORCH_SIZES_INLINE + 8 * PRB_TORCH_INLINE_MAX,
               8 * dims);
    } else if (!read_at(torch->objects, outside, out->shape, 8 * dims) ||
               !read_at(torch->objects, outside + 8 * dims, out->stride, 8 * dims)) {
        return false;
    }
    int64_t product = 1;
    for (unsigned i = 0; i < out->dims; i++)
        if (out->shape[i] < 0 || __builtin_mul_overflow(product, out->shape[i], &product))
            return false;
    out->numel = product;
    return product == (int64_t)word(torch, PRB_TORCH_NUMEL);
}

/* Of torch in elements; here in bytes. */
static bool scale_strides(struct prb_tensor *tensor)
{
    for (unsigned i = 0; i < tensor->dims; i++)
        if (__builtin_mul_overflow(tensor->stride[i], (int64_t)tensor->item_size,
                                   &tensor->stride[i]))
            return false;
    return true;
}

const char *prb_torch_device(int8_t code)
{
    return code >= 0 && (size_t)code < COUNT(devices) ? devices[code] : NULL;
}

static bool device_name(int8_t device, int8_t index, char *out, size_t cap)
{
    if (!prb_torch_device(device) || index < -1)
        return false;
    if (index < 0)
        snprintf(out, cap, "%s", devices[device]);
    else
        snprintf(out, cap, "%s:%d", devices[device], index);
    return true;
}

static bool read_kinds(struct torch *torch, struct prb_tensor *out)
{
    uint16_t code;
    memcpy(&code, torch->bytes + PRB_TORCH_DTYPE, sizeof code);
    const struct prb_dtype *dtype = prb_torch_dtype(code);
    const int8_t *device = prb_torch_device_in((const uint8_t *)torch->bytes);
    if (!dtype || !device || !device_name(device[0], device[1], out->device, sizeof out->device))
        return false;
    snprintf(out->dtype, sizeof out->dtype, "%s", dtype->name);
    out->item_size = dtype->size;
    return true;
}

/* ---- storage ---- */

static void read_storage(struct torch *torch, struct prb_tensor *out)
{
    uint64_t storage, data;
    int64_t offset = (int64_t)word(torch, PRB_TORCH_STORAGE_OFFSET), size;
    uint8_t bytes[PRB_TORCH_STORAGE_READ];
    char device[32];
    const char *why = NULL;
    if (!prb_objects_words(torch->objects, torch->impl + torch->form->head, &storage, 1))
        why = "its storage cannot be read";
    else if (!storage)
        why = "it has no storage";
    else if (!read_at(torch->objects, storage + torch->form->head, bytes, sizeof bytes))
        why = "its storage cannot be read";
    if (why) {
        snprintf(out->unreadable, sizeof out->unreadable, "%s", why);
        return;
    }
    memcpy(&data, bytes + PRB_TORCH_STORAGE_DATA, 8);
    memcpy(&size, bytes + PRB_TORCH_STORAGE_SIZE, 8);
    if (size < 0 || offset < 0 ||
        __builtin_mul_overflow(offset, (int64_t)out->item_size, &offset) ||
        !device_name((int8_t)bytes[PRB_TORCH_STORAGE_DEVICE],
                     (int8_t)bytes[PRB_TORCH_STORAGE_DEVICE + 1], device, sizeof device)) {
        snprintf(out->unreadable, sizeof out->unreadable, "its storage contradicts itself");
        return;
    }
    out->storage = data;
    out->storage_size = size;
    out->storage_offset = offset;
    out->data = data ? data + (uint64_t)offset : 0;
}

/* ---- layout ---- */

/* The C++ classes that are not TensorImpl itself, and what torch calls their layouts. */
static const struct {
    const char *mangled; /* its std::type_info's name begins so */
    const char *layout;  /* NULL: its own field says */
} classes[] = {
    {"N3c1010TensorImpl", "strided"},
    {"N2at11QTensorImpl", "strided"},
    {"N5torch5utils", "strided"},
    {"N2at16SparseTensorImpl", "sparse_coo"},
    {"N2at19SparseCsrTensorImpl", NULL},
    {"N2at16OpaqueTensorImpl", "_mkldnn"},
    {"N2at6native16NestedTensorImpl", "nested"},
    {"N2at17BatchedTensorImpl", "batched"},
    {"N2at9functorch17BatchedTensorImpl", "batched"},
    {"N2at9functorch13TensorWrapper", "functorch"},
    {"N2at23FunctionalTensorWrapper", "functional"},
};

/* at::Layout */
static const char *const layouts[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                      "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};

/* The class by the type_info that its table of virtual functions names (Itanium C++ ABI 2.5.2). */
static const char *class_name(struct torch *torch)
{
    uint64_t table, info, name;
    if (!prb_objects_words(torch->objects, torch->impl, &table, 1) || table < 8 || table % 8 ||
        !prb_objects_words(torch->objects, table - 8, &info, 1) || info % 8 ||
        !prb_objects_words(torch->objects, info + 8, &name, 1))
        return NULL;
    return prb_objects_cstring(torch->objects, name, 200);
}

static void read_layout(struct torch *torch, struct prb_tensor *out)
{
    const char *name = class_name(torch), *found = NULL;
    if (name)
        name += *name == '*'; /* of a type that is compared by address */
    bool known = false;
    for (size_t i = 0; name && i < COUNT(classes) && !known; i++) {
        known = strncmp(name, classes[i].mangled, strlen(classes[i].mangled)) == 0;
        found = known ? classes[i].layout : NULL;
    }
    if (known && !found) {
        const uint8_t *code =
            prb_objects_get(torch->objects, torch->impl + torch->form->sizes + SPARSE_LAYOUT, 1);
        found = code && *code < COUNT(layouts) ? layouts[*code] : "sparse_compressed";
    }
    if (!found) /* the program's own class, or a core without it: its storage decides */
        found = out->unreadable[0] ? "unknown" : "strided";
    snprintf(out->layout, sizeof out->layout, "%s", found);
    if (strcmp(found, "strided") != 0)
        snprintf(out->unreadable, sizeof out->unreadable, "tensors of layout %s are not decoded",
                 found);
}

static void read_keys(struct torch *torch, struct prb_tensor *out)
{
    uint64_t keys = word(torch, PRB_TORCH_KEY_SET);
    unsigned bit = torch->form->conjugate;
    if (torch->form->head == 24 && !strncmp(out->device, "cpu", 3) && keys >> DENSE_BIT_OF_113 & 1)
        bit--;
    out->conjugated = keys >> bit & 1;
    out->negated = keys >> (bit + 1) & 1;
}

/* ---- autograd ---- */

/* AutogradMeta behind its first word and its name (std::string of the old ABI: 8 bytes, of the new
 * one: 32): the gradient, the function that made it and its accumulator (torch->form->function
 * each), a shared_ptr, a vector, a shared_ptr, perhaps hooks; then requires_grad. */
enum {
    META_NAME = 8,
    NAME_OLD = 8,
    NAME_NEW = 32,
    META_AFTER_FUNCTIONS = 16 + 24 + 16,
    NAME_LONGEST = 4096
};

/* The new std::string points into itself, or has its length next to the pointer. */
static prb_addr after_name(const uint64_t *words, prb_addr meta)
{
    bool own = words[0] == meta + META_NAME + 16;
    return meta + META_NAME + (own || words[1] <= NAME_LONGEST ? NAME_NEW : NAME_OLD);
}

static void read_autograd(struct torch *torch, struct prb_tensor *out)
{
    uint64_t meta, name[2], parts[2];
    out->is_leaf = true;
    if (!prb_objects_words(torch->objects, torch->impl + torch->form->head + 8, &meta, 1) ||
        !meta || meta % 8 || !prb_objects_words(torch->objects, meta + META_NAME, name, 2))
        return;
    prb_addr at = after_name(name, meta);
    prb_addr flag =
        at + 8 + 2u * torch->form->function + META_AFTER_FUNCTIONS + (torch->hooks ? 8 : 0);
    uint8_t own = 0;
    if (!prb_objects_words(torch->objects, at, parts, 2) || !read_at(torch->objects, flag, &own, 1))
        return;
    out->grad = parts[0] % 8 ? 0 : parts[0];
    out->is_leaf = parts[1] == 0;
    out->requires_grad = own == 1 || parts[1] != 0;
}

static void read_version(struct torch *torch, struct prb_tensor *out)
{
    uint64_t counter;
    uint32_t version;
    out->version = -1;
    if (prb_objects_words(torch->objects, torch->impl + torch->form->head + 24, &counter, 1) &&
        counter && read_at(torch->objects, counter + torch->form->head, &version, 4))
        out->version = version;
}

/* ---- a tensor ---- */

/* Whether an implementation has this form; sizes, type and device then are in out. */
static bool has_form(struct torch *torch, const struct prb_torch_form *form, bool points_back,
                     struct prb_tensor *out)
{
    uint64_t back;
    torch->form = form;
    if (points_back && (!prb_objects_words(torch->objects, torch->impl + form->object, &back, 1) ||
                        (back & ~7ull) != torch->object))
        return false;
    *out = (struct prb_tensor){
        .object = torch->object, .torch = true, .storage_size = -1, .implementation = torch->impl};
    return read_at(torch->objects, torch->impl + form->sizes, torch->bytes, PRB_TORCH_IMPL_READ) &&
           read_kinds(torch, out) && read_shape(torch, out);
}

static bool complete(struct torch *torch, struct prb_tensor *out, struct prb_error *err)
{
    if (!scale_strides(out))
        return prb_fail(err, PRB_CORRUPT,
                        "the strides of the tensor at 0x%" PRIx64 " are beyond all memory",
                        torch->object);
    read_storage(torch, out);
    read_layout(torch, out);
    read_keys(torch, out);
    read_autograd(torch, out);
    read_version(torch, out);
    prb_tensor_settle(out);
    /* A tensor without gradient points to one that is undefined, which has no device. */
    struct torch grad = {.objects = torch->objects, .impl = out->grad};
    struct prb_tensor ignored;
    if (out->grad && !has_form(&grad, torch->form, false, &ignored))
        out->grad = 0;
    return true;
}

/* 2.1+ gave both THPVariable and AutogradMeta a member for hooks; the former shows in its size. */
static bool has_hooks(struct prb_objects *objects, prb_addr object,
                      const struct prb_torch_place *place)
{
    struct prb_object_type *type = prb_type_of(objects, object, NULL);
    for (unsigned i = 0; type && type->python && type->base && i < PRB_BASES_MAX; i++)
        type = prb_type_at(objects, type->base, NULL);
    int64_t head = PRB_OFF(objects->layout, object, size);
    return type && type->basicsize - head - (place->maybe_owned ? 16 : 8) >= 16;
}

bool prb_torch_read(struct prb_objects *objects, prb_addr object, struct prb_tensor *out,
                    struct prb_error *err)
{
    struct torch torch = {.objects = objects, .object = object};
    struct prb_tensor found;
    prb_addr body = object + (uint64_t)PRB_OFF(objects->layout, object, size);
    for (int pass = 0; pass < 2; pass++) /* at first only what points back to the object */
        for (size_t i = 0; i < PRB_TORCH_PLACES; i++)
            for (size_t k = 0; k < PRB_TORCH_FORMS; k++) {
                if (!find_impl(objects, body, &prb_torch_places[i], &torch.impl) ||
                    !has_form(&torch, &prb_torch_forms[k], pass == 0, &found))
                    continue;
                torch.hooks = has_hooks(objects, object, &prb_torch_places[i]);
                if (!complete(&torch, &found, err))
                    return false;
                *out = found;
                return true;
            }
    return prb_fail(err, PRB_CORRUPT, "the tensor at 0x%" PRIx64 " contradicts itself", object);
}

bool prb_torch_impl(struct prb_objects *objects, prb_addr impl, struct prb_tensor *out,
                    struct prb_error *err)
{
    struct torch torch = {.objects = objects, .impl = impl};
    struct prb_tensor found;
    for (size_t k = 0; k < PRB_TORCH_FORMS; k++)
        if (has_form(&torch, &prb_torch_forms[k], false, &found)) {
            uint64_t back;
            if (prb_objects_words(objects, torch.impl + prb_torch_forms[k].object, &back, 1))
                found.object = back & ~7ull;
            if (!complete(&torch, &found, err))
                return false;
            *out = found;
            return true;
        }
    return prb_fail(err, PRB_CORRUPT, "the TensorImpl at 0x%" PRIx64 " contradicts itself", impl);
}

bool prb_torch_grad(struct prb_objects *objects, const struct prb_tensor *tensor,
                    struct prb_tensor *out, struct prb_error *err)
{
    if (!tensor->grad)
        return prb_fail(err, PRB_NOT_FOUND, "the tensor has no gradient");
    return prb_torch_impl(objects, tensor->grad, out, err);
}
