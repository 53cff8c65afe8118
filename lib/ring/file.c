/*
 * The file of a table: made whole before it has its name, or gone on with where an earlier probe of
 * this process left one of the same shape (after a detach, or before an exec).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "ring/columns.h"
#include "ring/writer.h"

#define ROUND_UP(n, to) (((n) + (to) - 1) / (to) * (to))

static size_t head_bytes(size_t columns)
{
    size_t bytes = sizeof(struct prb_ring_head) + columns * sizeof(struct prb_ring_head_column);
    return ROUND_UP(bytes, (size_t)4096);
}

uint64_t prb_ring_retention_bits(double own)
{
    double all = prb_ring_process.retention, least = own > 0 && (own < all || all <= 0) ? own : all;
    uint64_t bits;
    memcpy(&bits, &least, sizeof bits);
    return bits;
}

static void write_head(struct prb_ring_head *head, const struct prb_ring_table *table,
                       const struct prb_ring_column *columns)
{
    head->version = PRB_RING_VERSION;
    head->head_bytes = (uint32_t)head_bytes(table->column_count);
    head->chunk_bytes = table->chunk_bytes;
    head->chunks_max = table->chunk_count;
    head->columns = table->column_count;
    head->pid = prb_ring_process.pid;
    memcpy(head->name, table->name, sizeof head->name);
    atomic_store(&head->retention, prb_ring_retention_bits(table->retention));
    for (size_t i = 0; i < table->column_count; i++) {
        struct prb_ring_head_column *column = &head->column[i];
        column->type = columns[i].type;
        snprintf(column->name, sizeof column->name, "%s", columns[i].name);
        prb_ring_cut(column->unit, sizeof column->unit, columns[i].unit);
        prb_ring_cut(column->doc, sizeof column->doc, columns[i].doc);
    }
    atomic_thread_fence(memory_order_release);
    head->magic = PRB_RING_MAGIC;
}

/* The whole length is mapped, and only what is reserved is ever touched: the head and so many
 * chunks. */
static bool map_file(struct prb_ring_table *table, int fd, uint32_t chunks, struct prb_error *err)
{
    struct stat st;
    uint64_t first = head_bytes(table->column_count) + (uint64_t)chunks * table->chunk_bytes;
    if (fstat(fd, &st) != 0)
        return prb_fail_sys(err, errno, "%s", table->path);
    free(table->slots);
    if (!(table->slots = calloc(table->chunk_count, sizeof *table->slots)))
        return prb_nomem(err);
    if (!prb_ring_reserve(fd, 0, first, err))
        return prb_error_prefix(err, "%s", table->path);
    table->device = st.st_dev;
    table->inode = st.st_ino;
    table->map_bytes =
        head_bytes(table->column_count) + (size_t)table->chunk_count * table->chunk_bytes;
    char *map = mmap(NULL, table->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        atomic_fetch_sub(&prb_ring_process.memory, first);
        return prb_fail_sys(err, errno, "%s cannot be mapped", table->path);
    }
    madvise(map, table->map_bytes, MADV_DONTFORK);
    madvise(map, table->map_bytes, MADV_DONTDUMP);
    table->map = map;
    table->head = (struct prb_ring_head *)map;
    table->reserved = chunks;
    for (uint32_t i = 0; i < chunks; i++)
        table->slots[i].use = PRB_RING_FILLED;
    return true;
}

void prb_ring_file_unmap(struct prb_ring_table *table)
{
    mmap(table->map, table->map_bytes, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    atomic_fetch_sub(&prb_ring_process.memory, head_bytes(table->column_count) +
                                                   (uint64_t)table->reserved * table->chunk_bytes);
}

/* ---- going on ---- */

/* Whether the file's head is what this table's would be, but for its limits (which the table takes
 * then), and what its rows changed. */
static bool same_head(struct prb_ring_table *table, int fd, const struct prb_ring_column *columns)
{
    size_t bytes = head_bytes(table->column_count);
    PRB_AUTO_FREE struct prb_ring_head *there = calloc(1, bytes), *wanted = calloc(1, bytes);
    if (!there || !wanted || pread(fd, there, bytes, 0) != (ssize_t)bytes)
        return false;
    write_head(wanted, table, columns);
    wanted->flags = there->flags;
    wanted->dropped = there->dropped;
    wanted->retention = there->retention;
    wanted->chunk_bytes = there->chunk_bytes;
    wanted->chunks_max = there->chunks_max;
    if (memcmp(there, wanted, bytes) != 0 || !prb_ring_shape_is_good(there))
        return false;
    table->chunk_bytes = there->chunk_bytes;
    table->chunk_count = there->chunks_max;
    return true;
}

/* The next generation is new, and the next chunk the one behind the newest. */
static void go_on(struct prb_ring_table *table)
{
    for (uint32_t i = 0; i < table->reserved; i++) {
        const struct prb_ring_chunk *chunk =
            (const void *)(table->map + table->head->head_bytes + (size_t)i * table->chunk_bytes);
        uint32_t generation = prb_ring_generation(atomic_load(&chunk->state));
        table->slots[i].rows = PRB_RING_UNCOUNTED;
        if (generation > table->generation) {
            table->generation = generation;
            table->turn = i + 1;
        }
    }
    table->prepared = table->turn;
    atomic_store(&table->head->flags, 0);
    atomic_store(&table->head->retention, prb_ring_retention_bits(table->retention));
}

static bool reopen(struct prb_ring_table *table, const struct prb_ring_column *columns)
{
    struct stat st;
    PRB_AUTO_FD int fd = open(table->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        !same_head(table, fd, columns))
        return false;
    uint64_t chunks = ((uint64_t)st.st_size - head_bytes(table->column_count)) / table->chunk_bytes;
    if (chunks < PRB_RING_CHUNKS_AT_FIRST || chunks > table->chunk_count ||
        !map_file(table, fd, (uint32_t)chunks, NULL))
        return false;
    go_on(table);
    return true;
}

/* ---- making ---- */

static bool make(struct prb_ring_table *table, const char *path,
                 const struct prb_ring_column *columns, struct prb_error *err)
{
    unlink(path);
    PRB_AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return prb_fail_sys(err, errno, "%s", path);
    if (!map_file(table, fd, table->at_first, err))
        return false;
    write_head(table->head, table, columns);
    if (rename(path, table->path) == 0)
        return true;
    prb_fail_sys(err, errno, "%s", table->path);
    prb_ring_file_unmap(table);
    return false;
}

bool prb_ring_file_make(struct prb_ring_table *table, const struct prb_ring_column *columns,
                        struct prb_error *err)
{
    char path[sizeof table->path + sizeof PRB_RING_NEW];
    if (reopen(table, columns))
        return true;
    snprintf(path, sizeof path, "%s" PRB_RING_NEW, table->path);
    if (make(table, path, columns, err))
        return true;
    unlink(path);
    return false;
}
