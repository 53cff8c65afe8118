/* The Flight Recorder of torch.distributed, read through the probe and parsed. */
#ifndef PRB_TABLE_RECORDER_H
#define PRB_TABLE_RECORDER_H

#include <jansson.h>

#include "base/cleanup.h"
#include "sql/table.h"

PRB_DEFINE_AUTO_PTR(json_t, json_t, json_decref)

struct prb_recording {
    double time;          /* when it was read, s since the epoch */
    int rank, world_size; /* of the process; -1: unknown */
    json_t *texts;        /* an array: an object of each recorder (gloo's and its like, NCCL's) */
    size_t entries;       /* of all of them */
};

/* Read that of a process; a probe is loaded when there is none, and a note says so.  False: err says why. */
bool prb_recording_take(struct prb_rows *rows, struct prb_target *target, struct prb_recording *out,
                        struct prb_error *err);
void prb_recording_deinit(struct prb_recording *recording);
/* Say why it has no entries, when it has none. */
void prb_recording_note_empty(struct prb_rows *rows, const struct prb_recording *recording);
PRB_DEFINE_AUTO(prb_recording, struct prb_recording, prb_recording_deinit)

/* One row of its tables: the cells that all have. */
void prb_recording_row(struct prb_rows *rows, const struct prb_recording *recording);
#define PRB_RECORDING_COLUMNS                                                                      \
    {"timestamp", PRB_REAL, "s", "when it was read, since the epoch"},                             \
        {"snapshot_id", PRB_INTEGER, "id", "of this reading: its time in ms"},                     \
        {"pid", PRB_INTEGER, "id", "of the process"},                                              \
        {"rank", PRB_INTEGER, "id", "of the process in its job; NULL: it has none",                \
         .of_rank = true},                                                                         \
        {"world_size", PRB_INTEGER, "count", "ranks of the job; NULL: not known"}

/* Cells of a JSON object: what is missing or of another type is NULL.  Integers may be written as text. */
void prb_row_json_int(struct prb_rows *rows, const json_t *object, const char *key);
/* The same, and NULL for 0: a moment that has not come. */
void prb_row_json_time(struct prb_rows *rows, const json_t *object, const char *key);
/* Text as it is, everything else as JSON. */
void prb_row_json_text(struct prb_rows *rows, const json_t *value);

#endif
