/*
 * What the rings of PyTorch tracing name by numbers (training/trace.h): names of modules, classes
 * and labels, steps, the process.  Read once for a table's rows.
 */
#ifndef PRB_TABLE_TORCH_NAMES_H
#define PRB_TABLE_TORCH_NAMES_H

#include "base/buf.h"
#include "base/hash_map.h"
#include "ring/ring.h"
#include "sql/table.h"
#include "training/trace.h"

struct prb_torch_name {
    const char *name, *class_name; /* or NULL */
    int64_t number;
};

/* A step that has ended. */
struct prb_torch_ended {
    double begin; /* s since the epoch */
    int64_t micro_steps;
};

struct prb_torch_names {
    struct prb_arena arena;
    struct prb_hash_map labels, objects, offsets, steps;
    int64_t pid, rank, world_size; /* -1: not known */
    const char *role;              /* or NULL */
    bool failed;                   /* out of memory */
};
void prb_torch_names_deinit(struct prb_torch_names *names);
PRB_DEFINE_AUTO(prb_torch_names, struct prb_torch_names, prb_torch_names_deinit)

/* steps: with those of torch_step_timing. */
bool prb_torch_names_read(struct prb_rows *rows, bool steps, struct prb_torch_names *out,
                          struct prb_error *err);
/* NULL: not told (yet). */
const char *prb_torch_label_of(const struct prb_torch_names *names, int64_t label);
const struct prb_torch_name *prb_torch_object_of(const struct prb_torch_names *names,
                                                 int64_t arming, int64_t address);
const struct prb_torch_ended *prb_torch_step_at(const struct prb_torch_names *names, int64_t arming,
                                                int64_t step);
/* The class in a label of PyTorch's: "AdamW" of "Optimizer.step#AdamW.step"; into out. */
const char *prb_torch_class_of(const char *label, char *out, size_t cap);

/* Cells: pid, rank, world_size, role. */
void prb_row_torch_process(struct prb_rows *rows, const struct prb_torch_names *names);
/* Cells: local_step, global_step. */
void prb_row_torch_steps(struct prb_rows *rows, const struct prb_torch_names *names, int64_t arming,
                         int64_t step);
/* global_step of a step; otherwise: where no counter of the program is known. */
int64_t prb_torch_global_step(const struct prb_torch_names *names, int64_t arming, int64_t step,
                              int64_t otherwise);
/* Cell: "AdamW#0", or NULL. */
void prb_row_torch_optimizer(struct prb_rows *rows, const struct prb_torch_names *names,
                             int64_t arming, int64_t address, const char *class_name);

#define PRB_TORCH_PROCESS_COLUMNS                                                                  \
    {"pid", PRB_INTEGER, "id", "of the process"},                                                  \
        {"rank", PRB_INTEGER, "id", "of the process in its job; NULL: it has none",                \
         .of_rank = true},                                                                         \
        {"world_size", PRB_INTEGER, "count", "processes of the job; NULL: not known"},             \
        {"role", PRB_TEXT, "", "as its launcher names it (ROLE_NAME)"}
#define PRB_TORCH_STEP_COLUMNS                                                                     \
    {"local_step", PRB_INTEGER, "",                                                                \
     "steps since recording began; 0: the one during which it began"},                             \
        {"global_step", PRB_INTEGER, "",                                                           \
         "as the program's own counter says after this step; NULL: none counts"}

#endif
