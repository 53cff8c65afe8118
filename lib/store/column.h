/*
 * One column of a chunk, from values to bytes and back, without loss of a bit.
 *
 * Numbers become differences of order 0, 1 or 2 (whichever the first PRB_STORE_TRIAL values favour,
 * or those of an earlier chunk of the table did: prb_store_codec),
 * zigzag, byte planes (all lowest bytes, then all second ones, …), zstd.  A REAL is the integer k
 * where every value is exactly k / 10^3, 10^6, 10^9 or k * 2^-m; else its bits.  Texts are a
 * dictionary of the chunk in the order of their first use, and its indices as numbers.
 */
#ifndef PRB_STORE_COLUMN_H
#define PRB_STORE_COLUMN_H

#include <stdint.h>

#include "ring/ring.h"
#include "store/pack.h"
#include "store/scale.h"

#define PRB_STORE_ROWS_MAX 65536u       /* of a chunk */
#define PRB_STORE_TEXTS_MAX (64u << 20) /* bytes of a column's dictionary */
#define PRB_STORE_TRIAL 1024u

struct prb_store_text {
    const char *data;
    uint32_t len;
};

/*
 * The way in which a table's column was packed best: its next chunks go the same way, until it gets
 * longer by a quarter or has been gone often enough, and all are tried again.  All zero at first.
 */
struct prb_store_codec {
    uint8_t left; /* chunks, before all ways are tried again */
    uint8_t scale, order;
    float bytes; /* of a row, when they were tried */
};

struct prb_store_column {
    enum prb_ring_type type;
    size_t count;         /* of rows */
    const uint8_t *nulls; /* a byte for each row, 1: it is NULL; or NULL: none is */
    union {
        const int64_t *integers; /* INTEGER, BOOLEAN */
        const double *reals;     /* REAL, TIME */
        const struct prb_store_text *texts;
    };
    struct prb_store_codec *codec; /* that encoding uses and keeps up to date; or NULL */
};

enum { /* flags */
       PRB_STORE_NUMBERS_PACKED = 1,
       PRB_STORE_NULLS_PACKED = 2,
       PRB_STORE_TEXTS_PACKED = 4,
       PRB_STORE_BOUNDED = 8, /* least and most are known */
};

/* What a chunk's directory says of a column, as it stands in files: little endian. */
struct prb_store_entry {
    uint8_t type;  /* enum prb_ring_type */
    uint8_t order; /* of the differences, 0 to 2 */
    uint8_t scale; /* enum prb_store_scale */
    uint8_t shift; /* m of k * 2^-m */
    uint8_t width; /* byte planes, 0 to 8 */
    uint8_t flags;
    uint16_t zero;
    uint32_t offset; /* of its parts, one behind the other, from the chunk's first byte */
    uint32_t null_count, nulls_stored;              /* bytes; a bit for each row */
    uint32_t numbers_stored;                        /* bytes */
    uint32_t text_count, texts_bytes, texts_stored; /* of the dictionary: ends (uint32_t), bytes */
    uint32_t zero2;
    int64_t least, most; /* of what is not NULL: INTEGER and BOOLEAN; of REAL and TIME a double's
                            bits, unknown where a NaN is among them */
};
_Static_assert(sizeof(struct prb_store_entry) == 56, "as it stands in files");

/* Append the column's bytes to a chunk and fill its entry.  False: NOMEM, or texts that are too
 * many (USAGE). */
bool prb_store_column_encode(struct prb_packer *packer, const struct prb_store_column *column,
                             struct prb_buf *chunk, struct prb_store_entry *entry,
                             struct prb_error *err);

/* The values of a column, freed together. */
struct prb_store_values {
    struct prb_store_column column; /* what is NULL is 0, 0.0 or "" */
    void *memory[3];
};
void prb_store_values_deinit(struct prb_store_values *values);
PRB_DEFINE_AUTO(prb_store_values, struct prb_store_values, prb_store_values_deinit)

/* Of a chunk of so many rows and bytes, which may be anybody's.  CORRUPT, NOMEM, UNSUPPORTED. */
bool prb_store_column_decode(struct prb_packer *packer, const char *chunk, size_t len,
                             const struct prb_store_entry *entry, size_t rows,
                             struct prb_store_values *out, struct prb_error *err);

#endif
