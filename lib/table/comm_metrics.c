/* comm_metrics: in each collective, who waited for whom, over all ranks of the job that are asked. */
#include <math.h>

#include "inspect/target.h"
#include "sql/db.h"
#include "table/comm_metrics.h"
#include "table/shared/thread_columns.h"
#include "table/shared/transfers.h"

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "when the last rank began, since the epoch, on its clock"},
    {"group", PRB_TEXT, "", "process group of torch.distributed; NULL: not known"},
    {"seq", PRB_INTEGER, "",
     "of the collective in its group: the same in all ranks; NULL: a send, or torch's recorder has "
     "it no more"},
    {"op", PRB_TEXT, "", "all_reduce and the like: those in which each rank waits for all; send"},
    {"src_rank", PRB_INTEGER, "id", "the rank that began last; that sent"},
    {"dst_rank", PRB_INTEGER, "id", "a rank that waited for it; that received"},
    {"latency_ms", PRB_REAL, "ms",
     "from the last begin to this rank's end; NULL: its end is not known"},
    {"wait_ms", PRB_REAL, "ms", "from this rank's begin to the last begin"},
    {"error_ms", PRB_REAL, "ms",
     "how far both may be off, because the two ranks' clocks differ; NULL: not known"},
    {"resolved", PRB_INTEGER, "",
     "0: latency_ms is below error_ms, so it says little; NULL: no latency"},
    {"source", PRB_TEXT, "",
     "observer: of PyTorch's own labels; recorder: its Flight Recorder, which has no ends"},
    {0},
};

static void begin_row(struct prb_rows *rows, const struct prb_job *job,
                      const struct prb_collective *from, const struct prb_collective *to,
                      double time)
{
    prb_row_begin(rows);
    prb_row_real(rows, time);
    prb_row_text(rows, from->group && from->group[0] ? from->group : NULL);
    prb_row_int_unless(rows, from->seq < 0 ? -1 : from->seq, -1);
    prb_row_text(rows, from->op);
    prb_row_int(rows, job->ranks[from->rank].rank);
    prb_row_int(rows, job->ranks[to->rank].rank);
}

static void put_times(struct prb_rows *rows, double latency, double wait, double error,
                      const char *source)
{
    if (isfinite(latency))
        prb_row_real(rows, latency > 0 ? latency : 0);
    else
        prb_row_null(rows);
    prb_row_real(rows, wait > 0 ? wait : 0);
    if (isfinite(error))
        prb_row_real(rows, error * 1e3);
    else
        prb_row_null(rows);
    if (isfinite(latency) && isfinite(error))
        prb_row_int(rows, latency >= error * 1e3);
    else
        prb_row_null(rows);
    prb_row_text(rows, source);
}

static void put(struct prb_rows *rows, const struct prb_job *job,
                const struct prb_collective *first, const struct prb_collective *last,
                const struct prb_collective *one)
{
    double offset = 0, error = NAN;
    prb_job_offset(job, first, one->rank, last->rank, &offset, &error);
    double begun = last->begin + offset; /* on the clock of the one that waited */
    double latency = (one->end - begun) * 1e3, wait = (begun - one->begin) * 1e3;
    begin_row(rows, job, last, one, last->begin);
    put_times(rows, latency, wait, error, one->source);
}

/* What was sent and received; all on the receiver's clock but the timestamp. */
static void put_transfer(struct prb_rows *rows, const struct prb_job *job,
                         const struct prb_transfer *transfer)
{
    const struct prb_collective *send = transfer->send, *receive = transfer->receive;
    double offset = 0, error = NAN;
    prb_job_offset(job, send, receive->rank, send->rank, &offset, &error);
    double sent = send->begin + offset, later = sent > receive->begin ? sent : receive->begin;
    begin_row(rows, job, send, receive, later - offset);
    put_times(rows, (receive->end - later) * 1e3, (sent - receive->begin) * 1e3, error,
              send->source);
}

static bool put_transfers(struct prb_rows *rows, const struct prb_job *job, struct prb_error *err)
{
    PRB_AUTO_FREE struct prb_transfer *list = NULL;
    size_t count;
    if (!prb_job_transfers(job, &list, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        put_transfer(rows, job, &list[i]);
    return true;
}

/* On the clock of the first of them. */
static double begin_of(const struct prb_job *job, const struct prb_collective *first,
                       const struct prb_collective *one)
{
    double offset = 0, error;
    prb_job_offset(job, first, one->rank, first->rank, &offset, &error);
    return one->begin - offset;
}

static void put_collective(struct prb_rows *rows, const struct prb_job *job, size_t first,
                           size_t count)
{
    const struct prb_collective *parts = &job->items[first], *last = parts;
    for (size_t i = 1; i < count; i++) {
        if (parts[i].rank == parts[i - 1].rank)
            return; /* twice the same number: which is which cannot be told */
        if (begin_of(job, parts, &parts[i]) > begin_of(job, parts, last))
            last = &parts[i];
    }
    for (size_t i = 0; i < count; i++)
        if (&parts[i] != last)
            put(rows, job, parts, last, &parts[i]);
}

bool prb_comm_metrics_rows(struct prb_rows *rows, const struct prb_job *job, struct prb_error *err)
{
    for (size_t i = 0, count; i < job->count; i += count) {
        count = prb_job_parts(job, i);
        if (count > 1 && job->items[i].waits)
            put_collective(rows, job, i, count);
    }
    return put_transfers(rows, job, err);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_job) struct prb_job job = {0};
    if (prb_rows_db(rows)->job_elsewhere)
        return true;
    if (!prb_job_take(rows, &job, err))
        return false;
    if (prb_rows_db(rows)->of_several && job.rank_count &&
        job.ranks[0].pid != (pid_t)prb_rows_target(rows)->info.pid)
        return true; /* the rank before this one tells of all */
    return prb_comm_metrics_rows(rows, &job, err);
}

const struct prb_table prb_table_comm_metrics = {
    .schema = "main",
    .name = "comm_metrics",
    .doc = "who waited for whom in the collectives of the job's ranks, and in what two ranks sent "
           "each "
           "other: of those on this machine, with -t @JOB of all hosts",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
