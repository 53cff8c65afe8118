/*
 * Tables in shared memory: one writer a thread, lock-free readers in other processes.
 *
 * A table is a folder entry DATA_DIR/NAME.ring: a head (schema, limits), then one ring of rows for each writing thread.
 * Rows cannot be read torn, the file's room is reserved before use (posix_fallocate, so a full file system is an error
 * at creation and never SIGBUS), and it can be read after the writer died.  libc only: the probe uses the writer.
 *
 * DATA_DIR: PROBING_DATA_DIR, else /dev/shm/probing-UID, else /tmp/probing-UID; below it PID-STARTTIME/ (the target's
 * own pid).  Folders 0700, files 0600.
 */
#ifndef PRB_RING_RING_H
#define PRB_RING_RING_H

#include "base/error.h"

enum prb_ring_type { PRB_RING_INTEGER = 1, PRB_RING_REAL, PRB_RING_TEXT, PRB_RING_BOOLEAN, PRB_RING_TIME /* s since the epoch */ };

#define PRB_RING_COLUMNS_MAX 64
#define PRB_RING_TEXT_MAX 65535 /* bytes; longer ones are cut at a character's end */

struct prb_ring_column {
    const char *name, *unit, *doc; /* unit, doc: "" if none */
    enum prb_ring_type type;
};

struct prb_ring_value {
    bool null;
    union {
        int64_t integer;
        double real;
        struct { const char *text; size_t len; };
    };
};

/* ---- writing ---- */
struct prb_ring_table;
struct prb_ring_limits { uint64_t bytes_max; double retention; /* s; 0: for ever */ };
struct prb_ring_table *prb_ring_table_new(const char *folder, const char *name, const struct prb_ring_column *columns,
                                          size_t count, const struct prb_ring_limits *limits, struct prb_error *err);
void prb_ring_table_free(struct prb_ring_table *table);
/* One row of the calling thread.  Never blocks; false: dropped (counted in the table). */
bool prb_ring_write(struct prb_ring_table *table, const struct prb_ring_value *values);

/* ---- reading ---- */
struct prb_ring_reader;
struct prb_ring_reader *prb_ring_open(int folder, const char *file, struct prb_error *err);
void prb_ring_close(struct prb_ring_reader *reader);
const struct prb_ring_column *prb_ring_columns(const struct prb_ring_reader *reader, size_t *count);
/* The rows that are there now, by time of writing; values and texts are borrowed during the call.  False: it stopped. */
bool prb_ring_each(struct prb_ring_reader *reader, bool (*row)(void *context, const struct prb_ring_value *values),
                   void *context, uint64_t *dropped_out, struct prb_error *err);

#endif
