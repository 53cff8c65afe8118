/* probing.clock: how far the clocks of the job's ranks on this machine differ. */
#include "inspect/target.h"
#include "sql/db.h"
#include "table/shared/collectives.h"

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s",
     "for which it holds, since the epoch: the middle of the collectives of 10 s"},
    {"pid", PRB_INTEGER, "id", "of the rank's process"},
    {"rank", PRB_INTEGER, "id", "whose clock it is"},
    {"reference", PRB_INTEGER, "id", "the rank that it is compared with: the lowest"},
    {"offset_s", PRB_REAL, "s", "what its clock shows beyond the reference's; NULL: not known"},
    {"error_s", PRB_REAL, "s", "the truth is within offset_s ± this"},
    {"collectives", PRB_INTEGER, "count",
     "of these 10 s that bound it; 0: only that both are on one machine, where processes read one "
     "clock"},
    {0},
};

static void put(struct prb_rows *rows, const struct prb_job *job, const struct prb_clock_span *span,
                size_t rank)
{
    double offset = 0, error = 0;
    prb_row_begin(rows);
    prb_row_real(rows, span->moment);
    prb_row_int(rows, job->ranks[rank].pid);
    prb_row_int(rows, job->ranks[rank].rank);
    prb_row_int(rows, job->ranks[0].rank);
    if (span->clocks && prb_clocks_offset(span->clocks, rank, 0, &offset, &error)) {
        prb_row_real(rows, offset);
        prb_row_real(rows, error);
    } else {
        prb_row_null(rows);
        prb_row_null(rows);
    }
    prb_row_int(rows, (int64_t)span->bounds);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_job) struct prb_job job = {0};
    if (!prb_job_take(rows, &job, err))
        return false;
    if (prb_rows_db(rows)->of_several && job.rank_count &&
        job.ranks[0].pid != (pid_t)prb_rows_target(rows)->info.pid)
        return true;
    for (size_t i = 0; i < job.span_count; i++)
        for (size_t rank = 0; rank < job.rank_count; rank++)
            put(rows, &job, &job.spans[i], rank);
    return true;
}

const struct prb_table prb_table_probing_clock = {
    .schema = "probing",
    .name = "clock",
    .doc = "how far the clocks of the job's ranks on this machine differ, each 10 s, bounded "
           "by their own collectives",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
