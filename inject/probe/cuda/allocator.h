/*
 * Numbers of PyTorch's CUDA allocator (CUDACachingAllocator), read where it keeps them: no call of
 * PyTorch's or CUDA's, no lock, no GIL, nothing that waits.
 *
 * Its class is private, and differs from version to version; what it counts does not: six arrays of
 * numbers one behind another (c10::CachingDeviceAllocator::DeviceStats), which keep to rules.  They are
 * sought by these, through the kernel, from the one symbol that is exported.  So nothing is found before
 * the program has allocated, nor in an allocator of another kind (cudaMallocAsync, one of the user's).
 */
#ifndef PRB_PROBE_CUDA_ALLOCATOR_H
#define PRB_PROBE_CUDA_ALLOCATOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes, of all devices. */
struct prb_cuda_memory {
    int64_t allocated, max_allocated; /* in tensors; the most, of each device */
    int64_t reserved, max_reserved;   /* of the driver's */
};

/* Whether PyTorch has such an allocator, used or not. */
bool prb_cuda_allocator_is_there(void);
/* Find its numbers; whether they are found.  A thread of ours, now and then. */
bool prb_cuda_allocator_look(void);
/* In the child of a fork. */
void prb_cuda_allocator_forked(void);

#define PRB_CUDA_DEVICES_MAX 64
extern struct prb_cuda_counters {
    atomic_size_t count; /* devices that were used; 0: not found */
    const volatile int64_t *devices[PRB_CUDA_DEVICES_MAX]; /* their numbers */
} prb_cuda_counters;

void prb_cuda_memory_add(size_t devices, struct prb_cuda_memory *out);

/* False: not found.  Any thread, at any time. */
static inline bool prb_cuda_memory_read(struct prb_cuda_memory *out)
{
    size_t count = atomic_load_explicit(&prb_cuda_counters.count, memory_order_acquire);
    if (__builtin_expect(count != 0, 0))
        prb_cuda_memory_add(count, out);
    return count != 0;
}

#endif
