/*
 * numpy arrays and torch tensors, from memory: what prb_tensor of probing.h has, their elements and
 * statistics.  The fields that are read must agree with each other before they are believed, as
 * these structs are private to their libraries.
 *   numpy.c, torch.c  the two libraries' structs
 *   dtype.c           element types by name
 *   element.c          one element: its bits, its text
 *   slice.c           parts
 *   values.c          elements in order, and as text
 *   blocks.c          all elements once, in no order
 *   statistics.c      what they come to; kernel.c is its inner loops
 */
#ifndef PRB_TENSOR_TENSOR_H
#define PRB_TENSOR_TENSOR_H

#include "py/object/object.h"

/* object: an instance of numpy.ndarray.  CORRUPT when its parts disagree.
 * Source: PyArrayObject_fields and PyArray_Descr, numpy/core/include/numpy/ndarraytypes.h, of numpy
 * 1 and 2. */
bool prb_ndarray_read(struct prb_objects *objects, prb_addr object, struct prb_tensor *out,
                      struct prb_error *err);
/* object: an instance of torch.Tensor, torch 1.13 to 2.13.  CORRUPT when its parts disagree.
 * Source: THPVariable (torch/csrc/autograd/python_variable.h), c10::TensorImpl
 * (c10/core/TensorImpl.h), AutogradMeta (torch/csrc/autograd/variable.h). */
bool prb_torch_read(struct prb_objects *objects, prb_addr object, struct prb_tensor *out,
                    struct prb_error *err);
/* Either, by its type; UNSUPPORTED: neither. */
bool prb_array_read(struct prb_objects *objects, prb_addr object, struct prb_tensor *out,
                    struct prb_error *err);
/* The tensor of a c10::TensorImpl; out->object 0: it has no Python object.  CORRUPT: not one. */
bool prb_torch_impl(struct prb_objects *objects, prb_addr impl, struct prb_tensor *out,
                    struct prb_error *err);
/* The gradient of a tensor that was read; NOT_FOUND: it has none. */
bool prb_torch_grad(struct prb_objects *objects, const struct prb_tensor *tensor,
                    struct prb_tensor *out, struct prb_error *err);
/* Whether an element is where it must be: inside the storage, if that is known.  Fills unreadable
 * where it is not. */
void prb_tensor_settle(struct prb_tensor *tensor);

/* The value of a numpy scalar of a C type of that name ("numpy.float32") as text.  UNSUPPORTED for
 * other types. */
bool prb_scalar_read(struct prb_objects *objects, prb_addr object, const char *type_name,
                     struct prb_buf *out, struct prb_error *err);
/* The name of a numpy.dtype object, as prb_tensor has it. */
bool prb_numpy_dtype_read(struct prb_objects *objects, prb_addr object, char out[64],
                          struct prb_error *err);
/* torch.dtype ("torch.float32") and torch.device ("device(type='cuda', index=0)"). */
bool prb_torch_constant_read(struct prb_objects *objects, prb_addr object, const char *type_name,
                             struct prb_buf *out, struct prb_error *err);

/* The name of a c10::DeviceType; NULL: no such code. */
const char *prb_torch_device(int8_t code);

/* ---- element types ---- */

enum prb_dtype_kind {
    PRB_DTYPE_NAMED, /* only its name is known: its elements are not decoded */
    PRB_DTYPE_BOOL,
    PRB_DTYPE_INT,
    PRB_DTYPE_UINT,
    PRB_DTYPE_HALF,
    PRB_DTYPE_BFLOAT,
    PRB_DTYPE_FLOAT,
    PRB_DTYPE_DOUBLE,
    PRB_DTYPE_LONG_DOUBLE,
    PRB_DTYPE_TINY, /* a byte: by the table of its 256 values */
    PRB_DTYPE_COMPLEX_HALF,
    PRB_DTYPE_COMPLEX,
    PRB_DTYPE_COMPLEX_DOUBLE,
};

/* The formats of a byte: exponent bits, bias, and what the largest codes mean. */
struct prb_tiny {
    uint8_t exponent, bias;
    bool sign, infinite;    /* infinite: as IEEE 754 has it */
    bool nan_is_minus_zero; /* the one NaN is 0x80 */
};

struct prb_dtype {
    const char *name;
    uint8_t size; /* bytes */
    enum prb_dtype_kind kind;
    struct prb_tiny tiny;
};

struct prb_element_type {
    const struct prb_dtype *dtype;
    bool swapped; /* the other byte order */
};

/* By the name that prb_tensor has; false: not known, or named only. */
bool prb_element_type_find(const char *name, struct prb_element_type *out);
/* By name, PRB_DTYPE_NAMED ones too; NULL: not known. */
const struct prb_dtype *prb_dtype_find(const char *name);
/* torch's own by c10::ScalarType; NULL: no such code. */
const struct prb_dtype *prb_torch_dtype(unsigned code);
/* The 256 values of a PRB_DTYPE_TINY. */
void prb_tiny_table(const struct prb_tiny *tiny, float out[256]);

/* ---- elements ---- */

#define PRB_ELEMENT_BYTES 16 /* bytes */

float prb_half_to_float(uint16_t half);
/* An element of a known type, whose bytes are in the target's order. */
struct prb_element prb_element_of(const struct prb_element_type *type, const uint8_t *bytes);
/* As Python prints it: the fewest digits that read back as the same element. */
void prb_element_text(const struct prb_dtype *dtype, const struct prb_element *number,
                      struct prb_buf *out);

/* UNSUPPORTED with the reason where the elements cannot be read. */
bool prb_tensor_element_type(const struct prb_tensor *tensor, struct prb_element_type *out,
                             struct prb_error *err);
bool prb_tensor_elements_in(struct prb_mem *mem, const struct prb_tensor *tensor, int64_t start,
                            size_t count, struct prb_element *out, struct prb_error *err);
bool prb_tensor_text_in(struct prb_mem *mem, const struct prb_tensor *tensor, size_t limit,
                        struct prb_buf *out, struct prb_error *err);
/* Every element once, in no order, up to PRB_BLOCK (kernel.h) side by side at a time; but those
 * that dimensions of stride 0 repeat: each of them counts *repeated_out times.  The caller has
 * checked that the tensor can be read. */
typedef void prb_elements_fn(void *context, const uint8_t *elements, size_t count);
bool prb_tensor_each_block(struct prb_mem *mem, const struct prb_tensor *tensor,
                           prb_elements_fn *each, void *context, int64_t *repeated_out,
                           struct prb_error *err);
bool prb_tensor_statistics_in(struct prb_mem *mem, const struct prb_tensor *tensor,
                              const struct prb_statistics_options *options,
                              struct prb_statistics *out, struct prb_error *err);

#endif
