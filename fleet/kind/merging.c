/* See merging.h. */
#include "fleet/kind/merging.h"

#include "base/error.h"
#include "fleet/kind/answers.h"

struct prb_merged *prb_merged_by(const json_t *args, struct prb_error *err)
{
    struct prb_merged_options options = {.by_function =
                                             json_is_true(json_object_get(args, "by_function"))};
    return prb_merged_new(&options, err);
}

bool prb_merged_put(const struct prb_merged *merged, struct prb_buf *out, struct prb_error *err)
{
    size_t len;
    PRB_AUTO_FREE char *text = prb_merged_pack(merged, &len, err);
    if (text)
        prb_buf_add(out, text, len);
    return text;
}

bool prb_merged_at_host(const json_t *args, const struct prb_fleet_part *parts, size_t count,
                        struct prb_buf *out, int *faulty_out, struct prb_error *err)
{
    PRB_AUTO(prb_merged) struct prb_merged *merged = prb_merged_by(args, err);
    for (size_t i = 0; merged && i < count; i++) {
        PRB_AUTO(prb_rank_set) struct prb_rank_set own = {0};
        if (!prb_rank_set_add(&own, parts[i].rank, parts[i].rank))
            return prb_nomem(err);
        if (!prb_merged_add_packed(merged, parts[i].data, parts[i].len, &own, err)) {
            *faulty_out = parts[i].rank;
            return false;
        }
    }
    return merged && prb_merged_put(merged, out, err);
}

bool prb_merged_at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                        struct prb_error *err)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set answered = {0};
    (void)args;
    if (!prb_ranks_answered(reply, &answered, err))
        return false;
    if (reply->part_count != 1)
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
    return prb_merged_add_packed(result, reply->parts[0].data, reply->parts[0].len, &answered, err);
}
