/*
 * Descriptors and short files to their end: read(2) gives and write(2) takes as much as it likes,
 * here the whole comes in one call.  Needs libc only; all descriptors are closed on exec.
 */
#ifndef PRB_BASE_FILE_H
#define PRB_BASE_FILE_H

#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/buf.h"

/* One read(2) of at most most bytes, behind what buf has: how many came, 0 at the end, or -1 with
 * errno (ENOMEM, too; then buf has failed). */
ssize_t prb_buf_read_some(struct prb_buf *buf, int fd, size_t most);

/* All that a descriptor has left, behind what buf has, which is NUL-terminated then even when
 * nothing came.  False with errno: that of read(2), ENOMEM, or EFBIG when there are more than most
 * bytes; what came before it is in buf. */
bool prb_buf_read(struct prb_buf *buf, int fd, size_t most);

/* The first cap - 1 bytes of a short file, as those of /proc are, and a NUL behind them: how many
 * bytes, without the NUL.  -1 with errno, and out is "": the file cannot be opened or read. */
long prb_read_text(const char *path, char *out, size_t cap);

/* The bytes at a place of a file, whatever its position is: how many came.  Fewer than len: the
 * file ends there (errno is 0), or pread(2) failed (errno). */
size_t prb_read_at(int fd, void *out, size_t len, uint64_t offset);

/* False with errno: that of write(2), and part of data may be written. */
bool prb_write_all(int fd, const void *data, size_t len);

/* The part of a path behind its last '/'. */
static inline const char *prb_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
