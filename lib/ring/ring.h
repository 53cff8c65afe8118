/*
 * Tables in shared memory: one writer a thread, lock-free readers in other processes.
 *
 * A table is a file FOLDER/NAME.ring (format.h): a head, then chunks of rows.  A thread writes into
 * a chunk of its own and takes another one when that is full: a fresh one while the limits allow,
 * else the one that was filled longest ago. Rows cannot be read torn, a chunk's room is reserved
 * before use (posix_fallocate, so a full file system is an error or the end of growth and never
 * SIGBUS), and the file can be read after the writer died.  libc only: the probe uses the writer.
 *
 * FOLDER: DATA_DIR/PID-STARTTIME (the target's own pid; field 22 of proc_pid_stat(5)).  DATA_DIR:
 * PROBING_DATA_DIR, else the first of folder.h that can be used.  Folders 0700, files 0600.
 */
#ifndef PRB_RING_RING_H
#define PRB_RING_RING_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

enum prb_ring_type {
    PRB_RING_INTEGER = 1,
    PRB_RING_REAL,
    PRB_RING_TEXT,
    PRB_RING_BOOLEAN,
    PRB_RING_TIME /* s since the epoch */
};

#define PRB_RING_COLUMNS_MAX 63 /* what a SQL table can have (sql/table.h) */
#define PRB_RING_TEXT_MAX 65535 /* bytes; longer ones are cut at a character's end */
#define PRB_RING_NAME_MAX                                                                          \
    63 /* bytes of a table's or column's name: letters, digits and _, no digit first */
#define PRB_RING_UNIT_MAX 31 /* bytes; longer ones are cut */
#define PRB_RING_DOC_MAX 255 /* the same */

struct prb_ring_column {
    const char *name, *unit, *doc; /* unit, doc: "" if none */
    enum prb_ring_type type;
};

struct prb_ring_value {
    bool null;
    union {
        int64_t integer; /* INTEGER; BOOLEAN: 0 or 1 */
        double real;     /* REAL, TIME */
        struct {
            const char *text;
            size_t len;
        };
    };
};

/* ---- writing ---- */

struct prb_ring_table;

struct prb_ring_limits {
    uint64_t bytes_max; /* of the file; 0: PRB_RING_BYTES_DEFAULT.  At least PRB_RING_BYTES_MIN are
                           used */
    double retention;   /* s; older rows are not read; 0: forever */
    uint32_t chunks;    /* a table that few threads write to, and that soon is full, is cut into so
                           many, all reserved at once; 0: into enough for many threads */
};
#define PRB_RING_BYTES_DEFAULT ((uint64_t)32 << 20)
#define PRB_RING_BYTES_MIN ((uint64_t)64 << 10)

/*
 * A table of this process.  In one folder the same name with the same columns gives the same table,
 * with others USAGE; so does a name that is not valid.  A file that an earlier probe of this process left is
 * continued when it has the same shape, else replaced.  Errors: IO with ENOSPC: no room; NOMEM: the
 * memory of prb_ring_set_memory is used up.
 */
struct prb_ring_table *prb_ring_table_new(const char *folder, const char *name,
                                          const struct prb_ring_column *columns, size_t count,
                                          const struct prb_ring_limits *limits,
                                          struct prb_error *err);
/* The same, columns as text: a line "name:type[:unit[:doc]]" each; types integer, real, text,
 * boolean, time. */
struct prb_ring_table *prb_ring_table_parse(const char *folder, const char *name,
                                            const char *columns,
                                            const struct prb_ring_limits *limits,
                                            struct prb_error *err);
/* No thread writes rows any more; the file remains.  The handle remains valid: writing to it drops
 * the row. */
void prb_ring_table_free(struct prb_ring_table *table);
/* The same, and the handle is gone: of a process that writes from one thread. */
void prb_ring_table_forget(struct prb_ring_table *table);
/* The same for all tables of this process. */
void prb_ring_tables_free(void);

/*
 * One row of the calling thread.  Never blocks; false: dropped (counted in the table).  In a child
 * after fork every row of the parent's tables is dropped.  Not for signal handlers.
 */
bool prb_ring_write(struct prb_ring_table *table, const struct prb_ring_value *values);
/* The same of who has just looked at the clock; time: ns since the epoch. */
bool prb_ring_write_at(struct prb_ring_table *table, const struct prb_ring_value *values,
                       int64_t time);

/* The same of a table without texts, none of whose values is NULL: cells has 8 bytes for each column, an
 * integer or a double's bits. */
bool prb_ring_write_cells(struct prb_ring_table *table, const int64_t *cells, int64_t time);

/*
 * One row as packed bytes, little endian: uint64_t with bit N set where column N is NULL; 8 bytes
 * for each column (int64_t, boolean 0 or 1, double of REAL and TIME, for TEXT its length in bytes
 * as int64_t); then the texts (UTF-8) one after another in the columns' order.  A NULL's 8 bytes
 * are 0.  0: written, 1: dropped (no room), -1: wrong.
 */
#define PRB_RING_PACKED_MAX ((size_t)8 << 20)
int prb_ring_write_packed(struct prb_ring_table *table, const void *packed, size_t len);

/* Reserve room for the next rows of all tables of this process, of each twice as much as was filled since
 * the last call: their writers then make no system call and meet no page fault.  For a thread of ours, now
 * and then. */
void prb_ring_prepare(void);

/* Bytes that all tables of this process may have together (probing.max_memory); 0: no bound. Tables
 * that are larger give back what they can and hold no more than they have. */
void prb_ring_set_memory(uint64_t bytes);
/* Bytes that they have reserved. */
uint64_t prb_ring_memory(void);
/* Seconds for which rows of all tables, present and coming, are read, unless a table's limits say
 * less; 0: forever. */
void prb_ring_set_retention(double seconds);

/* ---- folders ---- */

#define PRB_RING_PATH_MAX 256

/* DATA_DIR of this process, made when it is not there.  PERMISSION: it is somebody else's. */
bool prb_ring_data_dir(char out[PRB_RING_PATH_MAX], struct prb_error *err);
/* DATA_DIR/PID-STARTTIME of this process, made, and locked against sweeps for as long as it lives
 * (*lock_out, a descriptor; closed: no lock). */
bool prb_ring_folder_new(char out[PRB_RING_PATH_MAX], int *lock_out, struct prb_error *err);
/*
 * Remove the folders of ended processes whose last row is older than retention (s; 0: none is too
 * old), then the oldest ones while all of them hold more than bytes_max (0: no bound).  Returns how
 * many were removed.
 */
size_t prb_ring_sweep(const char *data_dir, double retention, uint64_t bytes_max);

/* ---- reading ---- */

struct prb_ring_reader;

/* A file of a folder that is open.  CORRUPT: it is not a ring, or damaged. */
struct prb_ring_reader *prb_ring_open(int folder, const char *file, struct prb_error *err);
/* The same of a descriptor, which is taken, also on failure; file is its name in errors. */
struct prb_ring_reader *prb_ring_open_fd(int fd, const char *file, struct prb_error *err);
void prb_ring_close(struct prb_ring_reader *reader);
/* Borrowed from the reader. */
const char *prb_ring_name(const struct prb_ring_reader *reader);
const struct prb_ring_column *prb_ring_columns(const struct prb_ring_reader *reader, size_t *count);

struct prb_ring_counts {
    uint64_t dropped; /* rows that the writer had no room for */
    uint64_t
        broken; /* chunks whose bytes contradict themselves: rows behind that place are left out */
    bool full;  /* the table could not grow to its limit: the file system was full */
    uint64_t lost; /* rows that were overwritten since the mark, unread */
    bool more;     /* the reading was as large as it may be: there are rows behind it */
};

#define PRB_RING_READ_MAX ((uint64_t)1 << 30) /* bytes of rows of one reading */
/*
 * The rows that are there now, by time of writing; values and texts are borrowed during the call.
 * Behind the columns' values there is one more: when the row was written, seconds since the epoch.
 * False: it stopped (err is filled, or row said so).
 */
bool prb_ring_each(struct prb_ring_reader *reader,
                   bool (*row)(void *context, const struct prb_ring_value *values), void *context,
                   struct prb_ring_counts *counts_out, struct prb_error *err);

/*
 * How far a ring was read: of each of its chunks the state, and how many rows it had ever held up to
 * there.  As it stands in files; places is freed by the owner.
 */
struct prb_ring_place {
    uint64_t state, rows;
};
struct prb_ring_mark {
    struct prb_ring_place *places;
    size_t count;
};
void prb_ring_mark_deinit(struct prb_ring_mark *mark);
PRB_DEFINE_AUTO(prb_ring_mark, struct prb_ring_mark, prb_ring_mark_deinit)
/* Bytes of rows that were written behind the mark (NULL: all that are there).  The next reading of
 * this reader, which is from the same mark, looks at the chunks that have these. */
uint64_t prb_ring_waiting(struct prb_ring_reader *reader, const struct prb_ring_mark *from);
/*
 * As prb_ring_each, the rows behind a mark (NULL: all), those that were begun first first, until
 * they are most bytes (0: no bound but PRB_RING_READ_MAX).  to_out, may be NULL: where it ended,
 * filled on success.
 */
bool prb_ring_each_from(struct prb_ring_reader *reader, const struct prb_ring_mark *from,
                        uint64_t most,
                        bool (*row)(void *context, const struct prb_ring_value *values),
                        void *context, struct prb_ring_counts *counts_out,
                        struct prb_ring_mark *to_out, struct prb_error *err);

/* Bytes that its chunks have at most, and those of a row of it without texts. */
uint64_t prb_ring_room(struct prb_ring_reader *reader);
double prb_ring_row_bytes(const struct prb_ring_reader *reader);
/* Of its file. */
uint64_t prb_ring_inode(const struct prb_ring_reader *reader);

/* When the last row was written, seconds since the epoch; 0: none yet. */
double prb_ring_latest(struct prb_ring_reader *reader);

#endif
