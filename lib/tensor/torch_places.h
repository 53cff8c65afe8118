/*
 * Where torch's tensors have their parts: layouts that are private and drift, measured on the headers
 * of every minor release from 1.13 to 2.13.  So a reading counts only if it agrees with itself
 * (tensor/torch.c).  libc only: the probe reads its own process by them.
 */
#ifndef PRB_TENSOR_TORCH_PLACES_H
#define PRB_TENSOR_TORCH_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c10::TensorImpl from its sizes on, the same from 1.13 to 2.13 */
enum {
    PRB_TORCH_SIZES_COUNT = 0,
    PRB_TORCH_SIZES_INLINE = 8, /* five sizes and five strides, or a pointer to 2n words */
    PRB_TORCH_STORAGE_OFFSET = 88,
    PRB_TORCH_NUMEL = 96,
    PRB_TORCH_DTYPE = 104,  /* uint16 */
    PRB_TORCH_DEVICE = 106, /* int8 type, int8 index, bool known; in 1.13 bool known is first */
    PRB_TORCH_KEY_SET = 112,
    PRB_TORCH_IMPL_READ = 120,
    PRB_TORCH_INLINE_MAX = 5,
};

/* c10::StorageImpl behind its head: address, what frees it (two words), device, size in bytes. */
enum {
    PRB_TORCH_STORAGE_DATA = 0,
    PRB_TORCH_STORAGE_DEVICE = 24,
    PRB_TORCH_STORAGE_SIZE = 32,
    PRB_TORCH_STORAGE_READ = 40,
};

/* What differs by version: where THPVariable has the pointer, from the end of the object's head … */
struct prb_torch_place {
    uint8_t impl;
    bool maybe_owned; /* c10::MaybeOwned: a flag before it; borrowed ones point to a Tensor that
                         points on */
};
#define PRB_TORCH_PLACES 2u
extern const struct prb_torch_place prb_torch_places[PRB_TORCH_PLACES];

/* … and where the sizes are: behind the head of counted objects (counts of 8 bytes each, later of
 * 4, for all that c10 counts) and what points back to Python (8 or 16).  A wrong one has a pointer
 * for the number of dimensions, or a type for the number of elements. */
struct prb_torch_form {
    uint8_t sizes, head; /* head: of a counted object; then come storage and autograd's pointers */
    uint8_t object;      /* what points back */
    uint8_t function;    /* bytes of a pointer to a node of autograd: intrusive_ptr, shared_ptr */
    uint8_t conjugate;   /* c10::DispatchKey::Conjugate in the set of keys; Negative is the next */
};
#define PRB_TORCH_FORMS 3u
extern const struct prb_torch_form prb_torch_forms[PRB_TORCH_FORMS];

/* Its type and index, from the bytes behind the sizes; NULL: not known. */
static inline const int8_t *prb_torch_device_in(const uint8_t *bytes)
{
    const int8_t *at = (const int8_t *)bytes + PRB_TORCH_DEVICE;
    return at[2] == 1 ? at : at[0] == 1 ? at + 1 : NULL;
}

#endif
