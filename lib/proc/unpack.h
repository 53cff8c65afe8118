/* Core files as systemd-coredump saves them: packed by zstd, lz4 or xz; also gzip. */
#ifndef PRB_PROC_UNPACK_H
#define PRB_PROC_UNPACK_H

#include "base/error.h"

/* The name of what the first bytes of a file (6 at the least) say that it is packed by; NULL:
 * none. */
const char *prb_packing(const void *head);
/*
 * The file unpacked: a new file without a name in $TMPDIR, else /var/tmp, with the same time; holes
 * where there are zeros.  A file that is cut off or damaged is unpacked as far as it goes.
 * fd: at its beginning.  -1 with err: UNSUPPORTED (built without that library; the remedy is the
 * command that does it), CORRUPT (nothing came out), IO (no room).
 */
int prb_unpack(int fd, const char *path, struct prb_error *err);

#endif
