/* The kind "hang", but a probe is loaded into ranks that have none, for their Flight Recorders: that
 * is more than a look.  args and result: those of "hang". */
#include "fleet/kind/hang.h"

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    return prb_hang_of_rank(seat, args, true, out, err);
}

static bool at_host(const json_t *args, const struct prb_fleet_part *parts, size_t count,
                    struct prb_buf *out, int *faulty_out, struct prb_error *err)
{
    return prb_fleet_kind_hang.at_host(args, parts, count, out, faulty_out, err);
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    return prb_fleet_kind_hang.at_root(args, reply, result, err);
}

const struct prb_fleet_kind prb_fleet_kind_hang_deep = {
    .name = "hang_deep",
    .needs = PRB_FLEET_CONTROL,
    .budget = 10,
    .of_rank = of_rank,
    .at_host = at_host,
    .at_root = at_root,
};
