/*
 * Symbols of one table by address, for files that are asked again and again: which symbols may
 * cover an address, without passing over the table.  Twelve bytes a symbol; one pass and a radix
 * sort.
 */
#ifndef PRB_PROC_SYMBOL_INDEX_H
#define PRB_PROC_SYMBOL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prb_symbol_at {
    uint32_t value; /* bytes above base */
    uint32_t reach; /* the farthest end of this one and those before, bytes above base */
    uint32_t number;
};

struct prb_symbol_index {
    struct prb_symbol_at *items; /* by value */
    size_t count, cap;
    uint64_t base;
    bool unfit; /* addresses too far apart */
};

/* Room for cap symbols with values from base on.  False: out of memory. */
bool prb_symbol_index_begin(struct prb_symbol_index *index, size_t cap, uint64_t base);
/* One that covers [value, value + size). */
void prb_symbol_index_add(struct prb_symbol_index *index, uint64_t value, uint64_t size,
                          uint32_t number);
/* After the last.  False: it cannot serve (out of memory, or more than 4 GiB of addresses). */
bool prb_symbol_index_end(struct prb_symbol_index *index);
void prb_symbol_index_deinit(struct prb_symbol_index *index);
/* The next symbol that may cover addr, of one value those first that were added first: *at begins
 * as SIZE_MAX.  False: no more. */
bool prb_symbol_index_next(const struct prb_symbol_index *index, uint64_t addr, size_t *at,
                           uint32_t *number_out);

#endif
