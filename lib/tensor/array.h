/*
 * numpy arrays and torch tensors: type, shape, element type and device, from memory.  Their data is
 * not touched. What is read must agree with itself before it is told; these structs are private to
 * their libraries.
 */
#ifndef PRB_TENSOR_ARRAY_H
#define PRB_TENSOR_ARRAY_H

#include "py/object/object.h"

#define PRB_ARRAY_DIMS_MAX 64

struct prb_array {
    unsigned dims;
    int64_t shape[PRB_ARRAY_DIMS_MAX];
    char dtype[64];  /* "float32", ">i4", "<U5" as str(array.dtype) has it, without "torch." */
    char device[32]; /* "cpu", "cuda:0"; "" for numpy */
};

/* object: an instance of numpy.ndarray.  CORRUPT when its parts disagree.
 * Source: PyArrayObject_fields and PyArray_Descr, numpy/core/include/numpy/ndarraytypes.h, of numpy
 * 1 and 2. */
bool prb_ndarray_read(struct prb_objects *objects, prb_addr object, struct prb_array *out,
                      struct prb_error *err);
/* object: an instance of torch.Tensor, torch 1.13 to 2.13.  CORRUPT when its parts disagree.
 * Source: THPVariable (torch/csrc/autograd/python_variable.h), c10::TensorImpl
 * (c10/core/TensorImpl.h). */
bool prb_tensor_read(struct prb_objects *objects, prb_addr object, struct prb_array *out,
                     struct prb_error *err);
/* The value of a numpy scalar of a C type of that name ("numpy.float32") as text.  UNSUPPORTED for
 * other types. */
bool prb_scalar_read(struct prb_objects *objects, prb_addr object, const char *type_name,
                     struct prb_buf *out, struct prb_error *err);
/* The name of a numpy.dtype object, as prb_array has it. */
bool prb_numpy_dtype_read(struct prb_objects *objects, prb_addr object, char out[64],
                          struct prb_error *err);
/* torch.dtype ("torch.float32") and torch.device ("device(type='cuda', index=0)"). */
bool prb_torch_constant_read(struct prb_objects *objects, prb_addr object, const char *type_name,
                             struct prb_buf *out, struct prb_error *err);

#endif
