/*
 * Rows of a rank's SQL tables, of one moment (fleet/rows).  args: fleet/rows/ask.h, and "first": the
 * ranks that have the rows of the job as a whole, one of each host.  result: struct prb_answers.
 */
#include "fleet/rows/rows.h"
#include "fleet/kind/answers.h"
#include "fleet/message/kind.h"

#define HEAD_BYTES ((size_t)64 << 10) /* of the reply around the rows */

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    const char *first = json_string_value(json_object_get(args, "first"));
    PRB_AUTO(prb_rank_set) struct prb_rank_set firsts = {0};
    struct prb_db *db = prb_fleet_seat_db(seat, err);
    if (!db || (first && !prb_rank_set_parse(first, &firsts, err)))
        return false;
    db->job = seat->member.job;
    db->job_elsewhere = first && !prb_rank_set_has(&firsts, seat->member.rank);
    size_t half = seat->max_bytes / 2, head = half < HEAD_BYTES ? half : HEAD_BYTES;
    return prb_rows_answer(db, args, seat->max_bytes - head, out, err);
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    (void)args;
    return prb_answers_of_host(result, reply, err);
}

const struct prb_fleet_kind prb_fleet_kind_rows = {
    .name = "rows",
    .budget = 10,
    .large = true,
    .pace = PRB_FLEET_SQL,
    .of_rank = of_rank,
    .at_root = at_root,
};
