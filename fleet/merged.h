/*
 * Stacks of many ranks, merged: equal stacks of threads with like names are one group with the set of its
 * ranks.  What differs by rank without meaning anything is left out: addresses (an unnamed native
 * frame is "file+offset"), digits of thread names.
 */
#ifndef PRB_FLEET_MERGED_H
#define PRB_FLEET_MERGED_H

#include <stdio.h>

#include "fleet/rank_set.h"

struct prb_merged;

struct prb_merged_options {
    bool by_function; /* equal functions are equal frames, whatever their line */
};

struct prb_merged_frame {
    enum prb_frame_kind kind;
    const char *name;   /* qualified */
    const char *file;   /* short: below sys.path, the base name of native ones; or "" */
    int line;           /* 0: unknown, or by function */
    const char *locals; /* "name = repr" lines, or "" */
};

struct prb_merged_group {
    const char *thread;     /* its name with digits as "#"; "MainThread"; of tasks what they are */
    const uint32_t *frames; /* indices, innermost first */
    size_t frame_count;
    struct prb_rank_set ranks;
    uint64_t threads; /* of all its ranks together */
};

PRB_API struct prb_merged *prb_merged_new(const struct prb_merged_options *options,
                                          struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_merged_free(struct prb_merged *merged);
PRB_DEFINE_AUTO_PTR(prb_merged, struct prb_merged, prb_merged_free)
/* All threads of a rank, with the locals that the stacks have. */
bool prb_merged_add(struct prb_merged *merged, int rank, const struct prb_stacks *stacks,
                    struct prb_error *err);
/* One stack of a rank, innermost first; what: in place of a thread's name. */
bool prb_merged_add_frames(struct prb_merged *merged, int rank, const char *what,
                           const struct prb_frame *frames, size_t count, struct prb_error *err);
/* Another one's groups, as prb_merged_pack wrote them; allowed: the ranks that may be in them.
 * Errors: CORRUPT; then nothing was added. */
bool prb_merged_add_packed(struct prb_merged *merged, const char *data, size_t len,
                           const struct prb_rank_set *allowed, struct prb_error *err);
/* Bytes for prb_merged_add_packed, which the caller frees. */
char *prb_merged_pack(const struct prb_merged *merged, size_t *len_out, struct prb_error *err);

/* Smallest group first: fewest ranks; then main threads; then the lowest rank. */
PRB_API void prb_merged_sort(struct prb_merged *merged);
PRB_API size_t prb_merged_count(const struct prb_merged *merged);
PRB_API const struct prb_merged_group *prb_merged_group(const struct prb_merged *merged, size_t i);
PRB_API const struct prb_merged_frame *prb_merged_frame(const struct prb_merged *merged,
                                                        uint32_t frame);
/* An array of objects: ranks ("0-2"), count, threads, thread, frames (kind, name, file, line). */
PRB_API void prb_merged_json(const struct prb_merged *merged, FILE *out);

#endif
