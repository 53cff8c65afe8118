/*
 * A ring's file, version 1: little endian, read by other processes while it is written, and after
 * the writer's death.
 *
 * A head, then chunks of chunk_bytes each.  A chunk's state is one word, generation << 32 | bytes
 * of rows, that the writer stores behind the row's bytes; rows of one generation never change, so
 * what lay below the count when the reading began is whole if the generation is the same when it
 * has ended. check shows whether a word was read while it was stored.  A file system without room
 * leaves a hole: chunks of zeros are chunks that were never used.
 */
#ifndef PRB_RING_FORMAT_H
#define PRB_RING_FORMAT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "ring/ring.h"

#define PRB_RING_MAGIC 0x31474e4952425250ull /* "PRBRING1" */
#define PRB_RING_VERSION 1u
#define PRB_RING_CHUNK_MIN 4096u
#define PRB_RING_CHUNK_MAX (128u << 10) /* holds two texts of the greatest length, nearly */
#define PRB_RING_CHUNKS_MAX 65536u      /* so a table has 8 GiB at most */
#define PRB_RING_CHUNKS_AIM                                                                        \
    64u /* a table is cut into no fewer, so that many threads find one each */
#define PRB_RING_SUFFIX ".ring"
#define PRB_RING_NEW ".new" /* behind that, while a file is made */

struct prb_ring_head_column {
    uint32_t type;
    char name[PRB_RING_NAME_MAX + 1], unit[PRB_RING_UNIT_MAX + 1], doc[PRB_RING_DOC_MAX + 1];
};

#define PRB_RING_FULL 1u /* flags: the file system had no room for another chunk */

struct prb_ring_head {
    uint64_t magic; /* stored last */
    uint32_t version, head_bytes, chunk_bytes, chunks_max, columns;
    int32_t pid; /* the writer's own */
    _Atomic uint32_t flags;
    uint32_t zero;
    _Atomic uint64_t dropped;
    _Atomic uint64_t retention; /* a double's bits */
    char name[PRB_RING_NAME_MAX + 1];
    struct prb_ring_head_column column[];
};

struct prb_ring_chunk {
    _Atomic uint64_t state, check;
    _Atomic int64_t latest; /* ns since the epoch: of the last row */
    uint64_t earlier;       /* rows of all generations before this one; valid with its first row */
    uint64_t zero[4];
};

/* A row: this, then a cell for each column, then the texts, filled to a multiple of 8. */
struct prb_ring_row {
    uint32_t length; /* bytes of all, with this */
    uint32_t stamp;  /* prb_ring_stamp */
    int64_t time;    /* ns since the epoch */
    uint64_t nulls;  /* bit i: column i */
};

union prb_ring_cell {
    int64_t integer; /* BOOLEAN: 0 or 1 */
    double real;
    struct {
        uint32_t offset, len; /* of a text, from the row's first byte */
    } text;
};

_Static_assert(sizeof(struct prb_ring_chunk) == 64, "as it stands in files");
_Static_assert(sizeof(struct prb_ring_row) == 24, "as it stands in files");
_Static_assert(sizeof(union prb_ring_cell) == 8, "as it stands in files");
_Static_assert(sizeof(struct prb_ring_head) == 120, "as it stands in files");

/* Whether the numbers of a head are such as a writer makes (columns.c). */
bool prb_ring_shape_is_good(const struct prb_ring_head *head);

static inline uint64_t prb_ring_check(uint64_t state)
{
    state = (state ^ state >> 29) * 0x9e3779b97f4a7c15ull;
    return ~(state ^ state >> 32);
}

/* What no other row, place and generation has, but for chance. */
static inline uint32_t prb_ring_stamp(uint32_t generation, uint32_t offset, uint32_t length)
{
    return generation * 0x9e3779b1u ^ offset * 0x85ebca6bu ^ length * 0xc2b2ae35u ^ 0x70726f62u;
}

static inline uint32_t prb_ring_generation(uint64_t state) { return (uint32_t)(state >> 32); }
static inline uint32_t prb_ring_used(uint64_t state) { return (uint32_t)state; }

#endif
