/* Descriptors and short files to their end: see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>

#define PIECE 16384

ssize_t prb_buf_read_some(struct prb_buf *buf, int fd, size_t most)
{
    char *to = prb_buf_reserve(buf, most);
    if (!to) {
        errno = ENOMEM;
        return -1;
    }
    ssize_t n;
    do
        n = read(fd, to, most);
    while (n < 0 && errno == EINTR);
    buf->len += n > 0 ? (size_t)n : 0;
    buf->data[buf->len] = '\0';
    return n;
}

bool prb_buf_read(struct prb_buf *buf, int fd, size_t most)
{
    size_t before = buf->len;
    for (;;) {
        ssize_t n = prb_buf_read_some(buf, fd, PIECE);
        if (n <= 0)
            return n == 0;
        if (buf->len - before > most) {
            errno = EFBIG;
            return false;
        }
    }
}

long prb_read_text(const char *path, char *out, size_t cap)
{
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && used < cap - 1) {
        n = read(fd, out + used, cap - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    }
    out[used] = '\0';
    return n < 0 && used == 0 ? -1 : (long)used;
}

size_t prb_read_at(int fd, void *out, size_t len, uint64_t offset)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = pread(fd, (char *)out + got, len - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = 0;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got;
}

bool prb_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}
