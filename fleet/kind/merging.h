/* What kinds share whose replies are merged stacks (fleet/merged.h). */
#ifndef PRB_FLEET_KIND_MERGING_H
#define PRB_FLEET_KIND_MERGING_H

#include "fleet/merged.h"
#include "fleet/message/kind.h"

/* Merged as the args say: by_function. */
struct prb_merged *prb_merged_by(const json_t *args, struct prb_error *err);
/* A rank's or a host's part. */
bool prb_merged_put(const struct prb_merged *merged, struct prb_buf *out, struct prb_error *err);
/* The functions of such a kind; the result is a struct prb_merged. */
bool prb_merged_at_host(const json_t *args, const struct prb_fleet_part *parts, size_t count,
                        struct prb_buf *out, int *faulty_out, struct prb_error *err);
bool prb_merged_at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                        struct prb_error *err);

#endif
