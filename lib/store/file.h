/*
 * A file of the store: what the processes of one job recorded on one machine, as SQLite in WAL mode
 * (schema: file.c).
 *
 * One process writes (the collector, under its lock), any number read.  What a commit has written is
 * kept: a writer that is killed at any moment leaves the last commit whole.  A file that is read may
 * be anybody's.
 */
#ifndef PRB_STORE_FILE_H
#define PRB_STORE_FILE_H

#include "store/chunk.h"

#define PRB_STORE_SUFFIX ".db"

struct prb_store_file;

/* write: made where it is not there (0600).  CORRUPT: not a file of the store; IO. */
struct prb_store_file *prb_store_open(const char *path, bool write, struct prb_error *err);
void prb_store_close(struct prb_store_file *file);
PRB_DEFINE_AUTO_PTR(prb_store_file, struct prb_store_file, prb_store_close)

const char *prb_store_path(const struct prb_store_file *file);

/* ---- what is in it ---- */

struct prb_store_process {
    int64_t id;           /* in the file, from 1 */
    int64_t pid;          /* as its folder of rings names it */
    int64_t started;      /* field 22 of proc_pid_stat(5) */
    double ended;         /* s since the epoch; 0: it runs, or nobody saw its end */
    int rank, world_size; /* -1: none */
    const char *command;  /* arguments joined by spaces, "": not known */
};

/* A table as some processes had it; another one may have had other columns. */
struct prb_store_shape {
    int64_t id;
    const char *schema, *name;
    const struct prb_ring_column *columns;
    size_t count;
};

/* Of the moment when the file was opened or refreshed; borrowed until the next one. */
bool prb_store_refresh(struct prb_store_file *file, struct prb_error *err);
const struct prb_store_process *prb_store_processes(const struct prb_store_file *file,
                                                    size_t *count_out);
const struct prb_store_shape *prb_store_shapes(const struct prb_store_file *file,
                                               size_t *count_out);
/* The job's name: its program's, or the launcher's. */
const char *prb_store_job(const struct prb_store_file *file);

/* How long the file's job wishes its rows kept: seconds, of MEMORY bytes; below 0: it did not say. */
enum prb_store_wish {
    PRB_STORE_WISH_SECONDS,
    PRB_STORE_WISH_RAW,
    PRB_STORE_WISH_MINUTES,
    PRB_STORE_WISH_MEMORY,
    PRB_STORE_WISHES
};
double prb_store_wish(const struct prb_store_file *file, enum prb_store_wish which);

/* ---- reading ---- */

/* Everything between these is one moment of the file. */
bool prb_store_read_begin(struct prb_store_file *file, struct prb_error *err);
void prb_store_read_end(struct prb_store_file *file);

/* How far the ring of a process's table is in the file; an empty mark: nothing of it.  inode: of the
 * ring's file; of another one the mark is empty. */
bool prb_store_mark(struct prb_store_file *file, int64_t process, const char *name, uint64_t inode,
                    struct prb_ring_mark *out, struct prb_error *err);

enum prb_store_resolution { PRB_STORE_RAW, PRB_STORE_MINUTE, PRB_STORE_HOUR };

struct prb_store_bound { /* of a column's values */
    size_t column;
    double least, most;
};

struct prb_store_query {
    const struct prb_store_shape *shape;
    int64_t process; /* 0: all */
    uint64_t wanted; /* a bit for each column; the others are NULL */
    const struct prb_store_bound *bounds;
    size_t bound_count; /* of times: rows beyond are left out, and chunks that have none within */
};

/* A row's values, one for each column of the shape; borrowed during the call. */
typedef bool prb_store_row_fn(void *context, const struct prb_ring_value *values, int64_t process,
                              enum prb_store_resolution resolution);
struct prb_store_counts {
    uint64_t broken;      /* chunks that are damaged: their rows are left out */
    uint64_t raw, summed; /* rows that stand for themselves, and for several */
    uint64_t chunks, all; /* read, of so many */
};
/* Chunk by chunk, those that ended first first.  False: err, or row said so. */
bool prb_store_each(struct prb_store_file *file, const struct prb_store_query *query,
                    prb_store_row_fn *row, void *context, struct prb_store_counts *counts_out,
                    struct prb_error *err);

/* When the last row of a process's table was written that is in the file; 0: none is. */
double prb_store_last_time(struct prb_store_file *file, int64_t shape, int64_t process);

struct prb_store_gap {
    const char *table; /* schema.name */
    int64_t process;
    double from, to; /* s since the epoch */
    int64_t rows;
};
bool prb_store_each_gap(struct prb_store_file *file,
                        bool (*gap)(void *context, const struct prb_store_gap *gap), void *context,
                        struct prb_error *err);

/* ---- writing ---- */

/* What is written between these is kept whole, or not at all.  NO_SPACE-like failures are IO. */
bool prb_store_begin(struct prb_store_file *file, struct prb_error *err);
bool prb_store_commit(struct prb_store_file *file, struct prb_error *err);
void prb_store_rollback(struct prb_store_file *file);

bool prb_store_set_job(struct prb_store_file *file, const char *name, struct prb_error *err);
bool prb_store_set_wish(struct prb_store_file *file, enum prb_store_wish which, double value,
                        struct prb_error *err);
/* Find by pid and start, or add; then its other fields are those given.  0: err. */
int64_t prb_store_add_process(struct prb_store_file *file, const struct prb_store_process *process,
                              struct prb_error *err);
/* Find or add.  0: err. */
int64_t prb_store_add_shape(struct prb_store_file *file, const struct prb_store_shape *shape,
                            struct prb_error *err);
/* When the oldest chunk ended, s since the epoch; INFINITY: there is none. */
double prb_store_oldest(struct prb_store_file *file);
/* Remove chunks that ended before this, the oldest first, at most so many (0: all), and give their
 * room back. */
bool prb_store_remove(struct prb_store_file *file, double before, int most, struct prb_error *err);
/* Give the room of what was removed back. */
bool prb_store_vacuum(struct prb_store_file *file, struct prb_error *err);
struct prb_store_new_chunk {
    int64_t shape, process;
    double first, last; /* s since the epoch */
    enum prb_store_resolution resolution;
    const char *bytes;
    size_t len, rows;
};
bool prb_store_add_chunk(struct prb_store_file *file, const struct prb_store_new_chunk *chunk,
                         struct prb_error *err);
bool prb_store_set_mark(struct prb_store_file *file, int64_t process, const char *name,
                        uint64_t inode, const struct prb_ring_mark *mark, struct prb_error *err);
bool prb_store_add_gap(struct prb_store_file *file, const struct prb_store_gap *gap,
                       struct prb_error *err);

#endif
