/*
 * What the probe records of sampled allocations: one region of the target's memory, which the probe
 * writes (inject/probe/memory/) and the tool reads from outside (read.c), live or in a core.  Both
 * sides.
 *
 * A region is a mapping that the maps of the process name PRB_REGION_NAME: a head, and the arrays
 * that it gives the places of.  Sites and frames are only ever added; `count` is stored last.  Cells
 * change in place, word by word.  When they are moved to the other array, `moves` is odd meanwhile:
 * a reader takes its copy when it is even and the same before and after.
 */
#ifndef PRB_ALLOCATION_REGION_H
#define PRB_ALLOCATION_REGION_H

#include <stdint.h>

#define PRB_REGION_NAME "probing-allocations" /* of a memfd_create(2) file */
#define PRB_REGION_MAGIC UINT64_C(0x31636f6c6c617270)

#define PRB_REGION_SITES_MAX 16384u
#define PRB_REGION_FRAMES_MAX 524288u /* of all sites */
#define PRB_REGION_CELLS_MAX 32768u   /* a power of two */
#define PRB_SITE_FRAMES_MAX 64u       /* of one site, the innermost ones */

/* Who allocated: X(name, text of the column kind). */
#define PRB_ALLOCATION_KINDS(X) X(PYTHON, "python") X(NATIVE, "native") X(TORCH_CPU, "torch_cpu")

enum prb_allocation_kind {
#define PRB_KIND(name, text) PRB_ALLOCATION_##name,
    PRB_ALLOCATION_KINDS(PRB_KIND)
#undef PRB_KIND
        PRB_ALLOCATION_KINDS_COUNT
};

/* A Python frame of a stack, the innermost first. */
struct prb_site_frame {
    uint64_t code;       /* the code object */
    int32_t instruction; /* bytes from the start of its code; -1: not begun */
    uint32_t check; /* prb_code_check() when it was seen: who has the address now may be another */
};

/* A stack that allocates. */
struct prb_site {
    uint64_t caller;       /* where the allocating function returns to; 0: Python's own allocator */
    uint32_t first, count; /* in the array of frames */
    uint32_t kind;         /* enum prb_allocation_kind */
    uint32_t cut;          /* 1: it has more frames than PRB_SITE_FRAMES_MAX */
};

/* What one thread allocated at one site in one interval; sums over samples, each weighted with
 * what it stands for.  samples 0: the cell is free. */
struct prb_cell {
    uint32_t site, thread, interval, samples;
    double bytes, count;
    double live_bytes, live_count; /* of these, what has not been freed */
    double live_variance;          /* bytes² */
};

struct prb_region {
    uint64_t magic; /* stored last */
    uint32_t size;  /* bytes of this struct */
    int32_t pid;    /* as the process sees it: a copy in a child of fork(2) is not the child's */
    double since;   /* s since the epoch, when it was switched on */
    double until;   /* when it was switched off; 0: it is on */
    uint64_t moves;
    uint32_t interval; /* s, of a cell */
    uint32_t site_count, frame_count;
    uint32_t cells;                                  /* which of the two arrays is in use */
    uint64_t site_place, frame_place, cell_place[2]; /* bytes from the start of the region */
    double period;                                   /* bytes between samples, mean, now */
    uint64_t samples, lost; /* taken; and those without a place among sites or cells */
    uint64_t live_samples;
    uint32_t libraries; /* hooked */
    uint32_t python;    /* 1: its allocators are hooked; 0: not yet, or why_no_python */
    char why_no_python[160];
};

/* What a code object is known by: a hash of the words that its layout has of it. */
static inline uint32_t prb_code_check(const uint64_t *words, unsigned count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (unsigned i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}
/* The fields of a code object that are these words: F(field). */
#define PRB_CODE_CHECK_FIELDS(F) F(firstlineno) F(filename) F(name) F(linetable)

#endif
