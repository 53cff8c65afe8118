/*
 * Making tables and ending them.
 *
 * A handle stays in memory for as long as the process lives, as any thread may be about to write;
 * what ends is the mapping, by one of private memory in its place.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "ring/columns.h"
#include "ring/writer.h"

#define CHUNKS_AT_FIRST 2
#define ROUND_UP(n, to) (((n) + (to)-1) / (to) * (to))

/* ---- shape ---- */

static void set_shape(struct prb_ring_table *table, uint64_t bytes)
{
    uint64_t chunk = PRB_RING_CHUNK_MAX, all = atomic_load(&prb_ring_process.memory_max);
    if (bytes < PRB_RING_BYTES_MIN)
        bytes = PRB_RING_BYTES_MIN;
    uint64_t likely = all && all < bytes ? all : bytes;
    while (chunk > PRB_RING_CHUNK_MIN && likely / chunk < PRB_RING_CHUNKS_AIM)
        chunk /= 2;
    uint64_t count = bytes / chunk;
    table->chunk_bytes = (uint32_t)chunk;
    table->chunk_count = count < PRB_RING_CHUNKS_MAX ? (uint32_t)count : PRB_RING_CHUNKS_MAX;
}

static void set_columns(struct prb_ring_table *table, const struct prb_ring_column *columns,
                        size_t count)
{
    table->column_count = (uint32_t)count;
    table->fixed = (uint32_t)(sizeof(struct prb_ring_row) + count * sizeof(union prb_ring_cell));
    for (size_t i = 0; i < count; i++) {
        table->type[i] = (uint8_t)columns[i].type;
        table->texts |= (uint64_t)(columns[i].type == PRB_RING_TEXT) << i;
        snprintf(table->column[i], sizeof table->column[i], "%s", columns[i].name);
    }
}

static bool same_columns(const struct prb_ring_table *table, const struct prb_ring_column *columns,
                         size_t count)
{
    bool same = table->column_count == count;
    for (size_t i = 0; same && i < count; i++)
        same = table->type[i] == columns[i].type && strcmp(table->column[i], columns[i].name) == 0;
    return same;
}

static uint64_t retention_bits(double own)
{
    double all = prb_ring_process.retention, least = own > 0 && (own < all || all <= 0) ? own : all;
    uint64_t bits;
    memcpy(&bits, &least, sizeof bits);
    return bits;
}

/* ---- the file ---- */

static size_t head_bytes(size_t columns)
{
    size_t bytes = sizeof(struct prb_ring_head) + columns * sizeof(struct prb_ring_head_column);
    return ROUND_UP(bytes, (size_t)4096);
}

static void write_head(struct prb_ring_table *table, const struct prb_ring_column *columns)
{
    struct prb_ring_head *head = table->head;
    head->version = PRB_RING_VERSION;
    head->head_bytes = (uint32_t)head_bytes(table->column_count);
    head->chunk_bytes = table->chunk_bytes;
    head->chunks_max = table->chunk_count;
    head->columns = table->column_count;
    head->pid = prb_ring_process.pid;
    memcpy(head->name, table->name, sizeof head->name);
    atomic_store(&head->retention, retention_bits(table->retention));
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

/* The whole length is mapped, and only what is reserved is ever touched. */
static bool map_file(struct prb_ring_table *table, int fd, struct prb_error *err)
{
    struct stat st;
    size_t head = head_bytes(table->column_count),
           first = (size_t)CHUNKS_AT_FIRST * table->chunk_bytes;
    if (fstat(fd, &st) != 0)
        return prb_fail_sys(err, errno, "%s", table->path);
    if (!prb_ring_reserve(fd, 0, head + first, err))
        return prb_error_prefix(err, "%s", table->path);
    table->device = st.st_dev;
    table->inode = st.st_ino;
    table->map_bytes = head + (size_t)table->chunk_count * table->chunk_bytes;
    char *map = mmap(NULL, table->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        atomic_fetch_sub(&prb_ring_process.memory, head + first);
        return prb_fail_sys(err, errno, "%s cannot be mapped", table->path);
    }
    madvise(map, table->map_bytes, MADV_DONTFORK);
    madvise(map, table->map_bytes, MADV_DONTDUMP);
    table->map = map;
    table->head = (struct prb_ring_head *)map;
    table->reserved = CHUNKS_AT_FIRST;
    for (size_t i = 0; i < CHUNKS_AT_FIRST; i++)
        table->slots[i].use = PRB_RING_FILLED;
    return true;
}

/* A writer that is within a row goes on in memory that nobody reads. */
static void unmap(struct prb_ring_table *table)
{
    mmap(table->map, table->map_bytes, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    atomic_fetch_sub(&prb_ring_process.memory, head_bytes(table->column_count) +
                                                   (uint64_t)table->reserved * table->chunk_bytes);
}

/* It has its name when its head is whole; that of an earlier program of this process goes. */
static bool make_file(struct prb_ring_table *table, const struct prb_ring_column *columns,
                      struct prb_error *err)
{
    char path[sizeof table->path + sizeof PRB_RING_NEW];
    snprintf(path, sizeof path, "%s" PRB_RING_NEW, table->path);
    unlink(path);
    PRB_AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return prb_fail_sys(err, errno, "%s", path);
    if (!map_file(table, fd, err)) {
        unlink(path);
        return false;
    }
    write_head(table, columns);
    if (rename(path, table->path) == 0)
        return true;
    prb_fail_sys(err, errno, "%s", table->path);
    unlink(path);
    unmap(table);
    return false;
}

/* ---- the handle ---- */

static void table_discard(struct prb_ring_table *table)
{
    free(table->slots);
    free(table);
}
PRB_DEFINE_AUTO_PTR(table, struct prb_ring_table, table_discard)

static struct prb_ring_table *table_make(const char *folder, const char *name,
                                         const struct prb_ring_column *columns, size_t count,
                                         const struct prb_ring_limits *limits,
                                         struct prb_error *err)
{
    static uint32_t index; /* under the lock */
    PRB_AUTO(table) struct prb_ring_table *table = calloc(1, sizeof *table);
    if (!table)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    set_shape(table, limits && limits->bytes_max ? limits->bytes_max : PRB_RING_BYTES_DEFAULT);
    set_columns(table, columns, count);
    table->retention = limits ? limits->retention : 0;
    snprintf(table->name, sizeof table->name, "%s", name);
    if (snprintf(table->path, sizeof table->path, "%s/%s" PRB_RING_SUFFIX, folder, name) >=
        (int)sizeof table->path)
        return PRB_NULL(prb_fail(err, PRB_USAGE, "%s: the path is too long", folder));
    if (!(table->slots = calloc(table->chunk_count, sizeof *table->slots)))
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    if (!make_file(table, columns, err))
        return NULL;
    table->index = index++;
    return PRB_STEAL(table);
}

static struct prb_ring_table *table_get(const char *folder, const char *name,
                                        const struct prb_ring_column *columns, size_t count,
                                        const struct prb_ring_limits *limits, struct prb_error *err)
{
    uint64_t token = prb_ring_token();
    struct prb_ring_table *table = atomic_load(&prb_ring_process.tables);
    for (; table; table = table->next) {
        if (atomic_load(&table->closed) || strcasecmp(table->name, name) != 0)
            continue;
        if (strcmp(table->name, name) == 0 && same_columns(table, columns, count))
            return table;
        prb_fail(err, PRB_USAGE, "there is a table %s with other columns", table->name);
        prb_error_remedy(err, "choose another name, or the columns that it has");
        return NULL;
    }
    table = table_make(folder, name, columns, count, limits, err);
    if (!table)
        return NULL;
    table->token = token;
    table->next = atomic_load(&prb_ring_process.tables);
    atomic_store(&prb_ring_process.tables, table);
    return table;
}

struct prb_ring_table *prb_ring_table_new(const char *folder, const char *name,
                                          const struct prb_ring_column *columns, size_t count,
                                          const struct prb_ring_limits *limits,
                                          struct prb_error *err)
{
    if (!prb_ring_table_name(name, err) || !prb_ring_columns_check(columns, count, err) ||
        !prb_ring_lock(err))
        return NULL;
    struct prb_ring_table *table = table_get(folder, name, columns, count, limits, err);
    prb_ring_unlock();
    return table;
}

void prb_ring_table_free(struct prb_ring_table *table)
{
    if (!table || !prb_ring_own(table) || atomic_exchange(&table->closed, true))
        return;
    unmap(table);
}

/* ---- all tables ---- */

static void each_own(void (*act)(struct prb_ring_table *table))
{
    if (!prb_ring_lock(NULL))
        return;
    prb_ring_token();
    for (struct prb_ring_table *table = atomic_load(&prb_ring_process.tables); table;
         table = table->next)
        if (!atomic_load(&table->closed))
            act(table);
    prb_ring_unlock();
}

void prb_ring_tables_free(void) { each_own(prb_ring_table_free); }

void prb_ring_set_memory(uint64_t bytes)
{
    atomic_store(&prb_ring_process.memory_max, bytes);
    each_own(prb_ring_chunk_trim);
}

uint64_t prb_ring_memory(void) { return atomic_load(&prb_ring_process.memory); }

static void set_retention(struct prb_ring_table *table)
{
    atomic_store(&table->head->retention, retention_bits(table->retention));
}

void prb_ring_set_retention(double seconds)
{
    prb_ring_process.retention = seconds;
    each_own(set_retention);
}
