/* The collectives of all ranks of a job on this machine, and how far the ranks' clocks differ. */
#ifndef PRB_TABLE_COLLECTIVES_H
#define PRB_TABLE_COLLECTIVES_H

#include "base/buf.h"
#include "base/cleanup.h"
#include "comm/clocks.h"
#include "sql/table.h"

struct prb_job_rank {
    struct prb_target *target;
    pid_t pid;
    int rank;
    bool observed; /* python.comm_collective has rows of it */
};

/* One rank's part in one collective. */
struct prb_collective {
    size_t rank;            /* index among the job's */
    double begin, end;      /* s since the epoch, on its clock; end NAN: not known */
    const char *group, *op; /* op without the backend: all_reduce */
    const char *backend;    /* "": not known */
    int64_t seq;            /* in its group; below -1: the recorder does not say it any more */
    int64_t number;         /* the observer's own, of this operation; -1: none */
    bool waits;             /* for all of its group: nobody ends before all have begun */
    const char *source;     /* "observer", "recorder" */
};

/* A time in which one solution of the clocks serves: short, since clocks may drift apart meanwhile. */
#define PRB_CLOCK_SPAN 10.0 /* s */
struct prb_clock_span {
    double begin;
    double moment;             /* for which it is solved: the middle of its collectives */
    struct prb_clocks *clocks; /* solved; NULL: the collectives contradict each other */
    size_t bounds;             /* collectives with known ends */
};

struct prb_job {
    struct prb_job_rank *ranks; /* by rank */
    size_t rank_count;
    struct prb_collective
        *items; /* those of one collective side by side, by time of their first begin */
    size_t count, cap;
    struct prb_collective *transfers; /* point to point, op is send or recv; unordered */
    size_t transfer_count, transfer_cap;
    int world_size;               /* ranks that the job has, on all machines; -1: not known */
    struct prb_clock_span *spans; /* by time */
    size_t span_count;
    struct prb_arena texts;
};

/*
 * Take those of the job that the target is a rank of: rows of python.comm_collective; where no rank has any, what the
 * Flight Recorder holds (a probe is loaded for that).  No rank of a job: no rows, and a note.  False: err says why.
 */
bool prb_job_take(struct prb_rows *rows, struct prb_job *out, struct prb_error *err);
void prb_job_deinit(struct prb_job *job);
PRB_DEFINE_AUTO(prb_job, struct prb_job, prb_job_deinit)

/* Rows of all ranks, as somebody else has them: each of a statement goes to `each`. */
struct prb_job_source {
    bool (*query)(void *context, const char *sql, prb_row_fn *each, void *each_context,
                  struct prb_error *err);
    void *context;
    bool one_machine;
    int world_size; /* of the job; -1: not known */
};
/* The same of them, whatever the target is. */
bool prb_job_take_from(struct prb_rows *rows, const struct prb_job_source *source,
                       struct prb_job *out, struct prb_error *err);

/* How many parts the collective has that begins at index first. */
size_t prb_job_parts(const struct prb_job *job, size_t first);
/* The clock of rank of beyond that of rank from, at the time of the collective with this first part: see
 * prb_clocks_offset. */
bool prb_job_offset(const struct prb_job *job, const struct prb_collective *first, size_t of,
                    size_t from, double *offset_out, double *error_out);

#endif
