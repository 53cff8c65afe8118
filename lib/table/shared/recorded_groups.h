/*
 * What the Flight Recorder of torch.distributed holds of collectives that the probe's observer saw:
 * their group and their tensors.  Read once for a table's rows, of a process that has a probe.  Both
 * are in order, so which entry is which follows from all of them (alignment.h).
 */
#ifndef PRB_TABLE_RECORDED_GROUPS_H
#define PRB_TABLE_RECORDED_GROUPS_H

#include "table/shared/alignment.h"
#include "table/shared/recorder.h"

/* The collectives of one name that were numbered together. */
struct prb_group_run {
    int64_t arming, label;
    struct prb_numbered *seen;
    size_t count, cap;
    size_t first, entries; /* of the recorder's: those of that name */
    int64_t shift;         /* from number to place among them */
    bool joined;
};

struct prb_groups {
    struct prb_recording recording;
    struct prb_group_entry *entries; /* by name, then time */
    size_t count, cap;
    struct prb_group_run *runs;
    size_t run_count, run_cap, last;
};
void prb_groups_deinit(struct prb_groups *groups);
PRB_DEFINE_AUTO(prb_groups, struct prb_groups, prb_groups_deinit)

/* First each collective that was seen, then the recorder is read, then each is found.  number: its
 * place among those of its label since the arming.  False: out of memory. */
bool prb_groups_note(struct prb_groups *groups, int64_t arming, int64_t label, int64_t number,
                     double begin);
/* label_of(context, label): its text, or NULL. */
bool prb_groups_join(struct prb_rows *rows, struct prb_groups *groups,
                     const char *(*label_of)(const void *, int64_t), const void *context);
/* NULL: the recorder has none, or is not there. */
const struct prb_group_entry *prb_groups_find(struct prb_groups *groups, int64_t arming,
                                              int64_t label, int64_t number, double begin);
/* Cell: its number in the group. */
void prb_row_group_number(struct prb_rows *rows, const struct prb_group_entry *entry);
/* Cell: the group's name. */
void prb_row_group(struct prb_rows *rows, const struct prb_group_entry *entry);
/* Cells: bytes, shape, dtype, ranks, rank within them, how many they are. */
void prb_row_group_tensors(struct prb_rows *rows, const struct prb_group_entry *entry);

#endif
