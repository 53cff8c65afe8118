/*
 * The writer inside: a process, its tables, the chunk that each thread writes to.
 *
 * What is here survives a fork of the target: the child has everything of it but the token, and a
 * table whose token is not the process's is left alone.
 */
#ifndef PRB_RING_WRITER_H
#define PRB_RING_WRITER_H

#include <pthread.h>
#include <sys/stat.h>

#include "ring/format.h"

/* What a chunk is to the writers; who wins the change to OPEN owns it. */
enum prb_ring_use {
    PRB_RING_NONE,   /* no room is reserved */
    PRB_RING_OPEN,   /* a thread writes to it, or changes it */
    PRB_RING_PARKED, /* its thread ended: the next one goes on behind used */
    PRB_RING_FILLED, /* to be taken again */
};

#define PRB_RING_CHUNKS_AT_FIRST 2u /* at least */

#define PRB_RING_UNCOUNTED UINT32_MAX /* rows of a chunk that an earlier probe wrote */

struct prb_ring_slot {
    _Atomic uint8_t use;
    uint32_t generation, used; /* of a PARKED one */
    uint32_t rows;             /* of one that is not OPEN */
};

struct prb_ring_table {
    struct prb_ring_table *next;
    uint64_t token; /* of the process that made it */
    uint32_t index; /* in a thread's lanes; no other table ever has it */
    atomic_bool closed, stopped_growing;
    uint32_t column_count, fixed;                /* bytes of a row without texts */
    uint32_t chunk_bytes, chunk_count, at_first; /* so many are reserved when it is made */
    uint64_t texts;                              /* bit i: column i is TEXT */
    uint8_t type[PRB_RING_COLUMNS_MAX];
    char column[PRB_RING_COLUMNS_MAX][PRB_RING_NAME_MAX + 1];
    char name[PRB_RING_NAME_MAX + 1];
    char path[PRB_RING_PATH_MAX + PRB_RING_NAME_MAX + 8];
    dev_t device;
    ino_t inode;
    double retention;           /* as the table's limits say */
    struct prb_ring_head *head; /* the map's first bytes */
    char *map;
    size_t map_bytes;
    struct prb_ring_slot *slots; /* one for each chunk */
    _Atomic uint32_t turn, parked, reserved, generation;
    uint32_t prepared; /* turn, when prb_ring_chunk_prepare looked */
};

/* Where a thread writes to. */
struct prb_ring_lane {
    struct prb_ring_table *table;
    struct prb_ring_chunk *chunk; /* NULL: none yet */
    uint32_t slot, generation, used, rows;
};

struct prb_ring_thread {
    struct prb_ring_lane *lanes; /* by the table's index */
    size_t count;
};

/* ---- process.c ---- */

/* The process's word: 0 in a child after fork, until it makes a table of its own. */
struct prb_ring_process {
    _Atomic uint64_t *token; /* in a page that fork wipes */
    _Atomic uint32_t *lock;  /* beside it: a child never finds it locked */
    bool wiped;              /* the kernel does that; else getpid() must be asked */
    pid_t pid;
    pthread_key_t key; /* struct prb_ring_thread * */
    struct prb_ring_table *_Atomic tables;
    _Atomic uint64_t memory, memory_max; /* bytes; max 0: no bound */
    double retention;
};
extern struct prb_ring_process prb_ring_process;

bool prb_ring_lock(struct prb_error *err);
void prb_ring_unlock(void);
/* Under the lock: the token of this process, made when there is none (a child begins anew). */
uint64_t prb_ring_token(void);
/* The calling thread's lane of a table; NULL: no memory. */
struct prb_ring_lane *prb_ring_lane_new(struct prb_ring_table *table);

static inline bool prb_ring_own(const struct prb_ring_table *table)
{
    const struct prb_ring_process *process = &prb_ring_process;
    return atomic_load_explicit(process->token, memory_order_relaxed) == table->token &&
           (process->wiped || getpid() == process->pid);
}

static inline struct prb_ring_lane *prb_ring_lane(struct prb_ring_table *table)
{
    struct prb_ring_thread *thread = pthread_getspecific(prb_ring_process.key);
    if (thread && table->index < thread->count && thread->lanes[table->index].table)
        return &thread->lanes[table->index];
    return prb_ring_lane_new(table);
}

/* ---- file.c ---- */

/* The table's file, mapped; path and shape are set. */
bool prb_ring_file_make(struct prb_ring_table *table, const struct prb_ring_column *columns,
                        struct prb_error *err);
/* The file does not change from here on: a writer within a row goes on in memory that nobody reads.
 */
void prb_ring_file_unmap(struct prb_ring_table *table);
/* Seconds for which rows are read, by the table's limits and the process's, as in the head. */
uint64_t prb_ring_retention_bits(double own);

/* ---- chunk.c ---- */

/* Another chunk for a lane, with room for need bytes.  False: there is none. */
bool prb_ring_chunk_take(struct prb_ring_table *table, struct prb_ring_lane *lane, uint32_t need);
/* Room for the next rows, twice as much as was filled since the last call. */
void prb_ring_chunk_prepare(struct prb_ring_table *table);
/* The lane's chunk is free for others. */
void prb_ring_chunk_leave(struct prb_ring_lane *lane);
/* Reserve the file's bytes [offset, offset + len); counts against the process's memory. */
bool prb_ring_reserve(int fd, uint64_t offset, uint64_t len, struct prb_error *err);
/* Give back chunks that nobody writes to, while the process has more than its memory. */
void prb_ring_chunk_trim(struct prb_ring_table *table);

#endif
