/* A snapshot that is made for somebody else. */
#ifndef PRB_INSPECT_SNAPSHOT_H
#define PRB_INSPECT_SNAPSHOT_H

#include "probing.h"
#include "proc/ids.h"

/* As prb_snapshot_write; as: with whose rights the file is made; NULL: ours. */
bool prb_snapshot_write_as(struct prb_target *target, const char *path, const struct prb_ids *as,
                           const struct prb_snapshot_options *options, uint64_t *bytes_out,
                           size_t *moved_out, struct prb_error *err);

#endif
