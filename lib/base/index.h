/*
 * Hash indices over arrays: the arrays hold the items, the index only their positions, and two
 * items are the same when the array's owner says so.  Open addressing, half full at the most.
 */
#ifndef PRB_BASE_INDEX_H
#define PRB_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRB_NO_ITEM UINT32_MAX

struct prb_index_kind {
    uint64_t (*hash)(const void *items, uint32_t item);
    bool (*same)(const void *items, uint32_t item, const void *key);
};

struct prb_index {
    uint32_t *slots; /* item + 1; 0: none */
    size_t capacity, count;
};

void prb_index_deinit(struct prb_index *index);
/* The item that is key, whose hash is given; PRB_NO_ITEM. */
uint32_t prb_index_find(const struct prb_index *index, const struct prb_index_kind *kind,
                        const void *items, uint64_t hash, const void *key);
/* An item that is not in it yet.  False: out of memory. */
bool prb_index_add(struct prb_index *index, const struct prb_index_kind *kind, const void *items,
                   uint64_t hash, uint32_t item);
/* Forget all items. */
void prb_index_clear(struct prb_index *index);

/* Of words (splitmix64's finish) and of bytes (FNV-1a). */
uint64_t prb_hash_words(uint64_t a, uint64_t b);
uint64_t prb_hash_bytes(const void *bytes, size_t len);

#endif
