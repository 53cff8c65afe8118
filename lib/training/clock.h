/*
 * The step clock: a number that the program counts anyway, read from outside.
 *
 * Of what is found (clocks.def, the optimizer's own step, variables of frames that stay) the first
 * one serves that is never seen to fall and changes at least twice.
 */
#ifndef PRB_TRAINING_CLOCK_H
#define PRB_TRAINING_CLOCK_H

#include "inspect/heap.h"

struct prb_step_clock;

/* Find what may count in a heap. */
struct prb_step_clock *prb_step_clock_new(const struct prb_heap *heap, struct prb_error *err);
void prb_step_clock_free(struct prb_step_clock *clock);
PRB_DEFINE_AUTO_PTR(prb_step_clock, struct prb_step_clock, prb_step_clock_free)

/* The result is of what is read from here on.  Which number serves is still told from all that was
 * read: it may change once in a minute. */
void prb_step_clock_restart(struct prb_step_clock *clock);
/* What may count should be looked for anew: long ago, or nothing serves, or a loader's iterator has
 * ended. */
bool prb_step_clock_is_stale(const struct prb_step_clock *clock);

/* Read all of them now; now: s, of any clock.  frames: of the thread that trains, innermost first,
 * or NULL. */
void prb_step_clock_read(struct prb_step_clock *clock, double now,
                         const struct prb_runtime *runtime, const struct prb_raw_thread *thread);

/* What it read last, of each number that may count: so many, and one of them by its index.  They are
 * found as the reading goes on: more may come at the end. */
size_t prb_step_clock_count(const struct prb_step_clock *clock);
int64_t prb_step_clock_last(const struct prb_step_clock *clock, size_t index);
/* It is a variable: read only with the thread's frames, and not counted up as a step ends, but in the
 * program's own time. */
bool prb_step_clock_is_variable(const struct prb_step_clock *clock, size_t index);
/* The index of the one that serves; false: none does. */
bool prb_step_clock_best(const struct prb_step_clock *clock, size_t *out);

struct prb_step_count {
    const char *name; /* "TrainerState.global_step"; NULL: none serves */
    int64_t first, last;
    int64_t steps;     /* last - first */
    double per_second; /* between its first and its last change */
    /* what a DataLoader gave the program: batches times their size; 0: not known */
    double items_per_second;
};
/* Valid until the clock is freed. */
struct prb_step_count prb_step_clock_result(const struct prb_step_clock *clock);

#endif
