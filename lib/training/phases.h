/*
 * How a training job's time is shared out among the phases of its step and its modules, by samples
 * of its stacks: nothing runs in the target.
 */
#ifndef PRB_TRAINING_PHASES_H
#define PRB_TRAINING_PHASES_H

#include "inspect/target.h"
#include "training/clock.h"
#include "training/phase.h"

/* What one part of the samples was at. */
struct prb_phase_part {
    enum prb_phase phase;
    enum prb_phase_activity activity;
    prb_addr module;  /* the innermost torch module under way; 0: none */
    const char *type; /* its class, "torch.nn.modules.linear.Linear"; NULL: not known */
    uint64_t samples;
};

/* The samples of the thread that trains: the one whose stacks are most often in a phase; waiting
 * counts.  Where none is, the main thread. */
struct prb_phases {
    struct prb_phase_part *parts; /* the largest first */
    size_t part_count;
    uint64_t samples; /* the sum of theirs */
    uint64_t dropped; /* stacks of that thread that could not be read for certain */
    uint64_t thread_id, native_id;
    double begin, end; /* s since the epoch */
    struct prb_arena arena;
};
void prb_phases_deinit(struct prb_phases *phases);
PRB_DEFINE_AUTO(prb_phases, struct prb_phases, prb_phases_deinit)

/* Called between two samples; false ends the run. */
typedef bool prb_phases_go_on_fn(void *context);

/* Sample the first runtime of a live target for so long (s) at a rate (1/s).  clock (may be NULL)
 * is read ten times a second meanwhile. */
bool prb_phases_take(struct prb_target *target, double seconds, double rate,
                     struct prb_step_clock *clock, prb_phases_go_on_fn *go_on, void *context,
                     struct prb_phases *out, struct prb_error *err);

#endif
