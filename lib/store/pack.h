/* zstd at level 1 for the parts of a chunk; without the library parts are stored as they are. */
#ifndef PRB_STORE_PACK_H
#define PRB_STORE_PACK_H

#include "base/buf.h"
#include "base/error.h"

struct prb_packer; /* contexts that are used again; one thread at a time */

struct prb_packer *prb_packer_new(struct prb_error *err);
void prb_packer_free(struct prb_packer *packer);
PRB_DEFINE_AUTO_PTR(prb_packer, struct prb_packer, prb_packer_free)

/* Append data, packed where that is smaller; *packed_out says which.  False: out of memory. */
bool prb_store_pack(struct prb_packer *packer, const void *data, size_t len, struct prb_buf *out,
                    bool *packed_out);
/* Bytes that packing would give; len where it gives no fewer. */
size_t prb_store_packed_size(struct prb_packer *packer, const void *data, size_t len);
/* The other way: exactly len bytes come out, or CORRUPT; UNSUPPORTED: packed, and no library. */
bool prb_store_unpack(struct prb_packer *packer, bool packed, const void *stored, size_t stored_len,
                      void *out, size_t len, struct prb_error *err);

#endif
