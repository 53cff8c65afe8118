/*
 * Secrets hidden in bytes: each known value, and what looks like a secret (base/secret.h), as a
 * string of 1-, 2- or 4-byte characters, is overwritten by stars, in one pass over the bytes
 * whatever the number of values.
 *
 * Not every value is sought, as a dump with "main" or "/usr/lib" starred out is useless:
 *   1 to 3 characters, a number of up to 7 digits, a switch (true, none), a path, a plain word
 *   of the table's own
 *       (password, localhost): never;
 *   4 and 5 characters, if they are more than letters, and 6 and 7: where they stand alone, as a
 *   whole word;
 *   up to 10 small letters: likewise;
 *   others: wherever they stand.
 * What is shown under a secret name is masked there whatever its length (prb_secret_mask).
 */
#ifndef PRB_MEM_HIDE_H
#define PRB_MEM_HIDE_H

#include "base/cleanup.h"
#include "mem/mem.h"

struct prb_hidden {
    struct prb_needle *items;
    size_t count, cap;
    size_t longest; /* bytes of the longest value */
    bool failed;    /* out of memory: not all are there */
    /* a bit for each hash of three first bytes; NULL until they are built */
    uint64_t *known, *looks;
    uint64_t *tails; /* the same of three last bytes */
    bool first[256]; /* bytes that a form begins with */
    uint32_t *table; /* by hash: index + 1 of the first item; the others by their next */
};

/* Seek a value, and its parts: a URL's password, as it is and percent-decoded or -encoded; each
 * line of a long one; what looks like a secret within.  Values that are not to be sought (above)
 * are left out. */
void prb_hidden_add(struct prb_hidden *hidden, const char *value, size_t len);
/* Overwrite all of them in bytes that stand together; returns whether there were any.  A value
 * of which only an end stands at the border of the bytes is overwritten, too, from 8 bytes on.
 * On failure (out of memory) everything is. */
bool prb_hidden_apply(struct prb_hidden *hidden, void *bytes, size_t len);
/* Overwrite them in all that is recorded (prb_mem_record_new).  False: out of memory, and the
 * recording must not be saved. */
bool prb_hidden_record(struct prb_hidden *hidden, struct prb_mem *record);

void prb_hidden_deinit(struct prb_hidden *hidden);
PRB_DEFINE_AUTO(prb_hidden, struct prb_hidden, prb_hidden_deinit)

#endif
