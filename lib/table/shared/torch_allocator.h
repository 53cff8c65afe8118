/* PyTorch's caching allocator of CUDA devices, whose numbers PyTorch itself tells. */
#ifndef PRB_TABLE_TORCH_ALLOCATOR_H
#define PRB_TABLE_TORCH_ALLOCATOR_H

#include "sql/table.h"

/* Bytes of all devices of a process; -1: not known. */
struct prb_torch_allocator {
    int64_t allocated, reserved, peak;
};

/*
 * Ask a process in which PyTorch has loaded its part for CUDA, if it has a probe; a note says why it was
 * not asked, or did not answer.  No other process is asked, and no probe is loaded.
 */
void prb_torch_allocator_ask(struct prb_rows *rows, struct prb_torch_allocator *out);

#endif
