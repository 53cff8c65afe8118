/*
 * What is kept of a recorded table: rows that the collector moved to the store, then those that are
 * in the ring only.  No row comes twice: the store says how far it has read the ring.
 */
#ifndef PRB_TABLE_RECORDED_HISTORY_H
#define PRB_TABLE_RECORDED_HISTORY_H

#include "proc/proc.h"
#include "store/file.h"

struct prb_history {
    int folder;                   /* of the rings, borrowed; -1: none */
    struct prb_store_file *store; /* owned; NULL: none */
    int64_t process;              /* in the store; 0: all of its processes */
    const struct prb_proc *dump;  /* a crash dump that has the rows, borrowed; NULL: none */
};
/* The store of a folder's process, by what the collector left in it (PRB_RING_STORE). */
void prb_history_find(struct prb_history *history, int folder);
void prb_history_close(struct prb_history *history);

/* A process of the store by its id; NULL: there is none. */
const struct prb_store_process *prb_history_process(const struct prb_history *history, int64_t id);

/* What a statement needs of a time, as the bound of a column that is asked for: 1, or 0 where nothing
 * is said of it. */
struct prb_times;
size_t prb_history_bound(const struct prb_times *times, const char *name, size_t column,
                         struct prb_store_bound *out);

enum prb_history_fit {
    PRB_HISTORY_ANY,
    PRB_HISTORY_PART, /* every column of the ring is asked for */
    PRB_HISTORY_WHOLE /* every one that is asked for is there */
};
struct prb_history_query {
    const char *schema, *name; /* of the table; the ring has the name */
    const struct prb_ring_column *columns;
    size_t count;
    uint64_t wanted; /* a bit for each; the others are NULL */
    const struct prb_store_bound *bounds;
    size_t bound_count;
    enum prb_history_fit fit;       /* what a ring must have, or its rows are left out */
    struct prb_ring_reader *reader; /* of the ring, NULL: opened in the folder */
    bool every;                     /* of all processes in the store, whichever is looked at */
};
struct prb_history_counts {
    struct prb_ring_counts ring;
    struct prb_store_counts store;
    uint64_t raw; /* rows that stand for themselves */
};
/*
 * Call row for each row, oldest chunk first: a value for each column, NULL where the row's own table
 * had no such column or one of another type.  False: err, or row said so.
 */
bool prb_history_each(const struct prb_history *history, const struct prb_history_query *query,
                      prb_store_row_fn *row, void *context, struct prb_history_counts *counts_out,
                      struct prb_error *err);

#endif
