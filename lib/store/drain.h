/* From rings to chunks. */
#ifndef PRB_STORE_DRAIN_H
#define PRB_STORE_DRAIN_H

#include "store/file.h"

#define PRB_STORE_CHUNK_ROWS 4096u

struct prb_drained {
    uint64_t rows, chunks, lost;
    bool more; /* there was more than is moved at a time */
};

/*
 * Move the rows that a ring has behind its mark into the file, and the mark with them, in one
 * transaction: at most some MiB.  inode: of the ring's file.  schema: of the SQL table; its name is
 * the ring's.  codecs: an entry for each column, kept from one call to the next.  False: nothing
 * was moved.
 */
bool prb_store_drain(struct prb_store_file *file, int64_t process, const char *schema,
                     struct prb_ring_reader *reader, uint64_t inode, struct prb_store_codec *codecs,
                     struct prb_drained *out, struct prb_error *err);

#endif
