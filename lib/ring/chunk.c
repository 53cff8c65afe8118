/*
 * Chunks: which thread has which, room in the file, memory of the process.
 *
 * Lock-free: a chunk is owned by whoever changes its use to OPEN.  Chunks are taken in turns, so
 * the one that was filled longest ago comes first.  The file is opened by its path each time it
 * grows, as a program may close or reuse every descriptor it finds; device and inode show that it
 * is still the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "ring/writer.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define INTERRUPTIONS_MAX 100
#define AHEAD_MAX 32u /* chunks that are prepared at once */

static uint64_t chunk_offset(const struct prb_ring_table *table, uint32_t slot)
{
    return table->head->head_bytes + (uint64_t)slot * table->chunk_bytes;
}

/* ---- room ---- */

static bool charge(uint64_t bytes)
{
    struct prb_ring_process *process = &prb_ring_process;
    uint64_t max = atomic_load(&process->memory_max);
    if (atomic_fetch_add(&process->memory, bytes) + bytes <= max || !max)
        return true;
    atomic_fetch_sub(&process->memory, bytes);
    return false;
}

bool prb_ring_reserve(int fd, uint64_t offset, uint64_t len, struct prb_error *err)
{
    struct rlimit limit;
    /* Beyond this limit the kernel does not only refuse: it sends SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        offset + len > limit.rlim_cur)
        return prb_fail_sys(err, EFBIG,
                            "the process may not write files of %llu bytes (RLIMIT_FSIZE)",
                            (unsigned long long)(offset + len));
    if (!charge(len))
        return prb_fail(err, PRB_NOMEM,
                        "the tables of this process have all the memory they may (%llu bytes)",
                        (unsigned long long)atomic_load(&prb_ring_process.memory_max));
    int failed = EINTR;
    for (int i = 0; i < INTERRUPTIONS_MAX && failed == EINTR; i++)
        failed = posix_fallocate(fd, (off_t)offset, (off_t)len);
    if (!failed)
        return true;
    atomic_fetch_sub(&prb_ring_process.memory, len);
    return prb_fail_sys(err, failed, "no room for %llu bytes", (unsigned long long)len);
}

static int open_again(const struct prb_ring_table *table)
{
    struct stat st;
    PRB_AUTO_FD int fd = open(table->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_dev != table->device || st.st_ino != table->inode)
        return -1;
    int found = fd;
    fd = -1;
    return found;
}

static bool grow(struct prb_ring_table *table, uint32_t slot)
{
    struct prb_error err = {0};
    uint64_t offset = chunk_offset(table, slot);
    PRB_AUTO_FD int fd = open_again(table);
    if (fd >= 0 && prb_ring_reserve(fd, offset, table->chunk_bytes, &err)) {
        atomic_fetch_add(&table->reserved, 1);
        /* Else each of its pages is a fault of the thread that comes to write there. */
        madvise(table->map + offset, table->chunk_bytes, MADV_POPULATE_WRITE);
        return true;
    }
    if (fd < 0 || err.code != PRB_NOMEM)
        atomic_fetch_or(&table->head->flags, PRB_RING_FULL);
    atomic_store(&table->stopped_growing, true);
    return false;
}

/* ---- ownership ---- */

static bool win(struct prb_ring_table *table, uint32_t slot, enum prb_ring_use use)
{
    uint8_t expected = (uint8_t)use;
    if (!atomic_compare_exchange_strong(&table->slots[slot].use, &expected, PRB_RING_OPEN))
        return false;
    if (use == PRB_RING_PARKED)
        atomic_fetch_sub(&table->parked, 1);
    return true;
}

static void give(struct prb_ring_table *table, uint32_t slot, enum prb_ring_use use)
{
    if (use == PRB_RING_PARKED)
        atomic_fetch_add(&table->parked, 1);
    atomic_store(&table->slots[slot].use, (uint8_t)use);
}

static void enter(struct prb_ring_table *table, struct prb_ring_lane *lane, uint32_t slot)
{
    lane->slot = slot;
    lane->chunk = (struct prb_ring_chunk *)(table->map + chunk_offset(table, slot));
}

/* Rows of a chunk of an earlier probe's. */
static uint64_t count_rows(const struct prb_ring_table *table, const struct prb_ring_chunk *chunk)
{
    uint32_t used = prb_ring_used(atomic_load_explicit(&chunk->state, memory_order_relaxed));
    uint32_t room = table->chunk_bytes - (uint32_t)sizeof *chunk;
    uint64_t count = 0;
    used = used < room ? used : room;
    for (uint32_t offset = 0; offset + table->fixed <= used; count++) {
        const struct prb_ring_row *row =
            (const struct prb_ring_row *)((const char *)(chunk + 1) + offset);
        if (row->length < table->fixed)
            break;
        offset += row->length;
    }
    return count;
}

/* Begin a chunk again: readers of its earlier rows see that before any byte of them changes.  It says
 * how many they were: who keeps rows elsewhere learns how many he missed. */
static void enter_anew(struct prb_ring_table *table, struct prb_ring_lane *lane, uint32_t slot)
{
    enter(table, lane, slot);
    uint64_t count = table->slots[slot].rows;
    if (count == PRB_RING_UNCOUNTED)
        count = count_rows(table, lane->chunk);
    lane->generation = atomic_fetch_add(&table->generation, 1) + 1;
    lane->used = lane->rows = 0;
    uint64_t state = (uint64_t)lane->generation << 32;
    atomic_store_explicit(&lane->chunk->state, state, memory_order_release);
    atomic_store_explicit(&lane->chunk->check, prb_ring_check(state), memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    lane->chunk->earlier += count;
}

/* Go on in the chunk of a thread that ended. */
static bool take_parked(struct prb_ring_table *table, struct prb_ring_lane *lane, uint32_t need)
{
    for (uint32_t slot = 0; slot < table->chunk_count && atomic_load(&table->parked); slot++) {
        if (!win(table, slot, PRB_RING_PARKED))
            continue;
        if (table->slots[slot].used + need > table->chunk_bytes - sizeof(struct prb_ring_chunk)) {
            give(table, slot, PRB_RING_FILLED);
            continue;
        }
        enter(table, lane, slot);
        lane->generation = table->slots[slot].generation;
        lane->used = table->slots[slot].used;
        lane->rows = table->slots[slot].rows;
        return true;
    }
    return false;
}

static bool take_turn(struct prb_ring_table *table, struct prb_ring_lane *lane)
{
    for (uint32_t tries = 0; tries < 2 * table->chunk_count; tries++) {
        uint32_t slot = atomic_fetch_add(&table->turn, 1) % table->chunk_count;
        if (win(table, slot, PRB_RING_FILLED)) {
            enter_anew(table, lane, slot);
            return true;
        }
        if (atomic_load(&table->stopped_growing) || !win(table, slot, PRB_RING_NONE))
            continue;
        if (grow(table, slot)) {
            enter_anew(table, lane, slot);
            return true;
        }
        give(table, slot, PRB_RING_NONE);
    }
    return false;
}

bool prb_ring_chunk_take(struct prb_ring_table *table, struct prb_ring_lane *lane, uint32_t need)
{
    if (lane->chunk) {
        table->slots[lane->slot].rows = lane->rows;
        give(table, lane->slot, PRB_RING_FILLED);
    }
    lane->chunk = NULL;
    return take_parked(table, lane, need) || take_turn(table, lane);
}

void prb_ring_chunk_prepare(struct prb_ring_table *table)
{
    uint32_t turn = atomic_load(&table->turn), taken = turn - table->prepared;
    uint32_t count = taken < AHEAD_MAX / 2 ? 2 * taken : AHEAD_MAX;
    table->prepared = turn;
    for (uint32_t i = 0; i < count && i < table->chunk_count; i++) {
        uint32_t slot = (turn + i) % table->chunk_count;
        if (atomic_load(&table->stopped_growing) || !win(table, slot, PRB_RING_NONE))
            continue;
        give(table, slot, grow(table, slot) ? PRB_RING_FILLED : PRB_RING_NONE);
    }
}

void prb_ring_chunk_leave(struct prb_ring_lane *lane)
{
    struct prb_ring_slot *slot = &lane->table->slots[lane->slot];
    slot->generation = lane->generation;
    slot->used = lane->used;
    slot->rows = lane->rows;
    lane->chunk = NULL;
    give(lane->table, lane->slot, PRB_RING_PARKED);
}

/* ---- giving back ---- */

static bool over(void)
{
    uint64_t max = atomic_load(&prb_ring_process.memory_max);
    return max && atomic_load(&prb_ring_process.memory) > max;
}

void prb_ring_chunk_trim(struct prb_ring_table *table)
{
    atomic_store(&table->stopped_growing, false);
    PRB_AUTO_FD int fd = over() ? open_again(table) : -1;
    uint32_t first = atomic_load(&table->turn);
    for (uint32_t i = 0;
         fd >= 0 && i < table->chunk_count && over() && atomic_load(&table->reserved) > 2; i++) {
        struct prb_ring_lane lane = {.table = table};
        uint32_t slot = (first + i) % table->chunk_count;
        if (!win(table, slot, PRB_RING_FILLED))
            continue;
        enter_anew(table, &lane, slot);
        table->slots[slot].rows = 0;
        if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)chunk_offset(table, slot), table->chunk_bytes) != 0) {
            give(table, slot, PRB_RING_FILLED);
            return;
        }
        atomic_fetch_sub(&table->reserved, 1);
        atomic_fetch_sub(&prb_ring_process.memory, table->chunk_bytes);
        give(table, slot, PRB_RING_NONE);
    }
}
