/* Memory of an ELF core file; see core.h.  Read by pread, so that a file that shrinks meanwhile is
 * a short read. */
#include "mem/core.h"

#include <string.h>

#include "base/file.h"

struct core {
    struct prb_mem base;
    int fd;
    struct prb_piece *pieces;
    size_t count;
    prb_mem_fn *fallback;
    void *context;
};

/* The first piece that ends behind addr; count when there is none. */
static size_t piece_from(const struct core *self, prb_addr addr)
{
    size_t low = 0, high = self->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct prb_piece *piece = &self->pieces[middle];
        if (addr >= piece->addr && addr - piece->addr >= piece->len)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Bytes up to the end of one piece, or (with the fallback) up to the beginning of the next. */
static size_t read_once(struct core *self, prb_addr addr, void *buf, size_t len, bool fallback)
{
    size_t i = piece_from(self, addr);
    const struct prb_piece *piece = i < self->count ? &self->pieces[i] : NULL;
    if (piece && addr >= piece->addr) {
        uint64_t in = addr - piece->addr, left = piece->len - in;
        return prb_read_at(self->fd, buf, left < len ? (size_t)left : len, piece->offset + in);
    }
    if (!fallback || !self->fallback)
        return 0;
    if (piece && piece->addr - addr < len)
        len = (size_t)(piece->addr - addr);
    size_t got = self->fallback(self->context, addr, buf, len);
    return got < len ? got : len;
}

static size_t read_all(struct core *self, prb_addr addr, void *buf, size_t len, bool fallback)
{
    size_t got = 0;
    while (got < len && addr <= UINT64_MAX - got) {
        size_t n = read_once(self, addr + got, (char *)buf + got, len - got, fallback);
        if (n == 0)
            break;
        got += n;
    }
    return got;
}

size_t prb_mem_core_read_own(struct prb_mem *core, prb_addr addr, void *buf, size_t len)
{
    return read_all((struct core *)core, addr, buf, len, false);
}

static bool core_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                       struct prb_error *err)
{
    (void)err;
    for (size_t i = 0; i < count; i++)
        ranges[i].got =
            read_all((struct core *)mem, ranges[i].addr, ranges[i].buf, ranges[i].len, true);
    return true;
}

static void core_free(struct prb_mem *mem)
{
    free(((struct core *)mem)->pieces);
    free(mem);
}

static const struct prb_mem_ops core_ops = {"core", core_readv, core_free};

struct prb_mem *prb_mem_core_new(int fd, const struct prb_piece *pieces, size_t count,
                                 prb_mem_fn *fallback, void *context, struct prb_error *err)
{
    struct core *self = calloc(1, sizeof *self);
    struct prb_piece *copy = malloc(count ? count * sizeof *copy : 1);
    if (!self || !copy) {
        free(self);
        free(copy);
        return PRB_NULL(prb_nomem(err));
    }
    if (count)
        memcpy(copy, pieces, count * sizeof *copy);
    *self = (struct core){{&core_ops, 0, 0}, fd, copy, count, fallback, context};
    return &self->base;
}
