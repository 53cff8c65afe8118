/* Which SQL tables a rank has.  args: columns (true: not only a hash).  result: struct
 * prb_answers. */
#include "fleet/kind/answers.h"
#include "fleet/message/kind.h"
#include "fleet/rows/rows.h"

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    struct prb_db *db = prb_fleet_seat_db(seat, err);
    return db && prb_schema_answer(db, args, out, err);
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    (void)args;
    return prb_answers_of_host(result, reply, err);
}

const struct prb_fleet_kind prb_fleet_kind_schema = {
    .name = "schema",
    .budget = 5,
    .pace = PRB_FLEET_SQL,
    .of_rank = of_rank,
    .at_root = at_root,
};
