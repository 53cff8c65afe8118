/* What NCCL's RAS service says of a job, read from its answer: JSON, or the text of older versions. */
#ifndef PRB_COMM_RAS_REPORT_H
#define PRB_COMM_RAS_REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "comm/ras.h"

#define PRB_RAS_OPS 5
/* "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", as NCCL counts them. */
extern const char *const prb_ras_ops[PRB_RAS_OPS];

/* Numbers: -1 is not known.  Texts: NULL is not known; they live as long as the report. */
struct prb_ras_rank {
    size_t comm; /* index of its communicator */
    int64_t rank, pid, cuda_device, nvml_device;
    const char *host;
    const char *
        status; /* INIT, RUNNING, FINALIZE, ABORT; of one that is missing NOCOMM, UNRESPONSIVE, DEAD */
    const char *error;           /* of it; NULL: none */
    bool missing;                /* it told nothing of this communicator */
    int64_t counts[PRB_RAS_OPS]; /* operations that it has launched */
};

struct prb_ras_comm {
    bool has_hash;
    uint64_t hash;
    int64_t size, missing;       /* ranks that it has, and of which nothing was told */
    const char *status, *errors; /* as NCCL sums them up: RUNNING, "INCOMPLETE,MISMATCH"; OK */
    int64_t counts[PRB_RAS_OPS]; /* of the rank that is farthest */
    const char *text;            /* what the text says of it; NULL: nothing */
    const json_t *json;          /* all of it; NULL: the answer is text */
};

struct prb_ras_report {
    const char *version; /* of NCCL; NULL: not told */
    struct prb_ras_comm *comms;
    size_t comm_count, comm_cap;
    struct prb_ras_rank *ranks; /* by communicator and rank; of a text those alone that it names */
    size_t rank_count, rank_cap;
    struct prb_buf notes; /* a line for each thing that concerns the whole job */
    json_t *root;
    bool too_many; /* it could not be read for that */
    struct prb_arena texts;
};

/* CORRUPT: it is no such answer, or was cut. */
bool prb_ras_report_read(struct prb_ras_answer *answer, struct prb_ras_report *out,
                         struct prb_error *err);
void prb_ras_report_deinit(struct prb_ras_report *report);
PRB_DEFINE_AUTO(prb_ras_report, struct prb_ras_report, prb_ras_report_deinit)

/* Whether a rank of the job runs in a process with this pid (as the process itself sees it).  A text names few. */
bool prb_ras_report_has(const struct prb_ras_report *report, int64_t pid);
/* How many operations of one kind the rank is behind the farthest; -1: not known. */
int64_t prb_ras_behind(const struct prb_ras_report *report, const struct prb_ras_rank *rank);

/* For the two readers. */
bool prb_ras_read_json(const struct prb_buf *text, struct prb_ras_report *out,
                       struct prb_error *err);
bool prb_ras_read_text(struct prb_buf *text, struct prb_ras_report *out, struct prb_error *err);
struct prb_ras_comm *prb_ras_add_comm(struct prb_ras_report *report);
struct prb_ras_rank *prb_ras_add_rank(struct prb_ras_report *report, size_t comm);

#endif
