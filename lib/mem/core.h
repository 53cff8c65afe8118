/*
 * Memory of an ELF core file: pieces of a file at their addresses, and a fallback for what the core
 * leaves out. What an ELF core is, proc/core.c knows; here are only the pieces.
 */
#ifndef PRB_MEM_CORE_H
#define PRB_MEM_CORE_H

#include "mem/mem.h"

/* len bytes of the file at offset lie at addr. */
struct prb_piece {
    prb_addr addr;
    uint64_t len, offset;
};

/*
 * fd stays the caller's, pieces (ascending, not overlapping) are copied.  fallback may be NULL; it
 * is asked for bytes of no piece, and returns how many it put into buf.
 */
struct prb_mem *prb_mem_core_new(int fd, const struct prb_piece *pieces, size_t count,
                                 prb_mem_fn *fallback, void *context, struct prb_error *err);
/* Up to len bytes from the pieces alone. */
size_t prb_mem_core_read_own(struct prb_mem *core, prb_addr addr, void *buf, size_t len);

#endif
