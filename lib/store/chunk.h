/*
 * A chunk: rows of one table of one process, column by column, as one run of bytes.
 *
 * A head, then an entry for each column (column.h), then their parts.  It says nothing of names:
 * the file that holds it does (file.h).
 */
#ifndef PRB_STORE_CHUNK_H
#define PRB_STORE_CHUNK_H

#include "store/column.h"

#define PRB_STORE_MAGIC 0x4b4e4843u /* "CHNK" */
#define PRB_STORE_VERSION 1u

struct prb_store_chunk_head { /* little endian */
    uint32_t magic;
    uint16_t version, columns;
    uint32_t rows, zero;
};
_Static_assert(sizeof(struct prb_store_chunk_head) == 16, "as it stands in files");

/* ---- making one ---- */

/* Rows that wait to become a chunk; texts are copied. */
struct prb_store_rows;

struct prb_store_rows *prb_store_rows_new(const struct prb_ring_column *columns, size_t count,
                                          struct prb_error *err);
void prb_store_rows_free(struct prb_store_rows *rows);
PRB_DEFINE_AUTO_PTR(prb_store_rows, struct prb_store_rows, prb_store_rows_free)
/* One more, a value for each column.  False: NOMEM, or they are as many as a chunk can have. */
bool prb_store_rows_add(struct prb_store_rows *rows, const struct prb_ring_value *values,
                        struct prb_error *err);
/* How its columns were packed before, an entry for each: kept by the caller, while rows is there. */
void prb_store_rows_remember(struct prb_store_rows *rows, struct prb_store_codec *codecs);
size_t prb_store_rows_count(const struct prb_store_rows *rows);
void prb_store_rows_clear(struct prb_store_rows *rows);
/* Append them as a chunk to out, which is empty. */
bool prb_store_chunk_make(const struct prb_store_rows *rows, struct prb_packer *packer,
                          struct prb_buf *out, struct prb_error *err);

/* ---- reading one ---- */

struct prb_store_chunk {
    const char *bytes;
    size_t len, rows, columns;
    struct prb_store_entry entries[PRB_RING_COLUMNS_MAX];
};

/* Of bytes that may be anybody's, which are borrowed.  CORRUPT. */
bool prb_store_chunk_open(const char *bytes, size_t len, struct prb_store_chunk *out,
                          struct prb_error *err);
/* The least and the most value of a column.  False: not known, or every one is NULL. */
bool prb_store_chunk_bounds(const struct prb_store_chunk *chunk, size_t column, double *least_out,
                            double *most_out);
/* Whether its column may have a value between these, which are of the column's kind (a NULL is
 * none); for TEXT always. */
bool prb_store_chunk_may_have(const struct prb_store_chunk *chunk, size_t column, double least,
                              double most);

/* The column that says when a row's event was, by its name: timestamp, time, ts,
 * begin or end.  SIZE_MAX: none. */
size_t prb_store_time_column(const struct prb_ring_column *columns, size_t count);

#endif
