/*
 * What the Flight Recorder of torch.distributed holds of collectives that the probe's observer saw:
 * their group and their tensors.  Read once for a table's rows, of a process that has a probe; the
 * entry of the same operation that was made at the same time is it.
 */
#ifndef PRB_TABLE_RECORDED_GROUPS_H
#define PRB_TABLE_RECORDED_GROUPS_H

#include "table/shared/recorder.h"

struct prb_groups {
    struct prb_recording recording;
    struct prb_group_entry *entries; /* by time */
    size_t count, cap;
    bool read;
};
void prb_groups_deinit(struct prb_groups *groups);
PRB_DEFINE_AUTO(prb_groups, struct prb_groups, prb_groups_deinit)

/* An entry is given once.  NULL: the recorder has none, or is not there. */
const struct prb_group_entry *prb_groups_find(struct prb_rows *rows, struct prb_groups *groups,
                                              const char *label, double begin);
/* Cell: the group's name. */
void prb_row_group(struct prb_rows *rows, const struct prb_group_entry *entry);
/* Cells: bytes, shape, dtype, ranks, rank within them, how many they are. */
void prb_row_group_tensors(struct prb_rows *rows, const struct prb_group_entry *entry);

#endif
