/*
 * The parts of a training step, told from the functions that a stack runs (phases.def).
 */
#ifndef PRB_TRAINING_PHASE_H
#define PRB_TRAINING_PHASE_H

#include <stdbool.h>
#include <stddef.h>

enum prb_phase {
    PRB_PHASE_OTHER,
    PRB_PHASE_DATA,
    PRB_PHASE_FORWARD,
    PRB_PHASE_BACKWARD,
    PRB_PHASE_OPTIMIZER,
    PRB_PHASE_ZERO_GRAD,
    PRB_PHASE_COMMUNICATION,
    PRB_PHASE_CHECKPOINT,
    /* Never the phase of a stack: */
    PRB_PHASE_WAIT,    /* an activity */
    PRB_PHASE_CLOSURE, /* an optimizer ends here: it calls the program */
};
/* "forward", … */
const char *prb_phase_name(enum prb_phase phase);

/* What a stack is at beside its phase. */
enum prb_phase_activity {
    PRB_ACTIVITY_NONE,
    PRB_ACTIVITY_COMMUNICATION,
    PRB_ACTIVITY_RECOMPUTE, /* a forward inside a backward: activation checkpointing */
    PRB_ACTIVITY_WAIT,
};
/* NULL for NONE. */
const char *prb_phase_activity_name(enum prb_phase_activity activity);

/* What one function says; OTHER: nothing. */
enum prb_phase prb_phase_of_function(const char *filename, const char *name);

struct prb_phase_state {
    enum prb_phase phase;
    enum prb_phase_activity activity;
};
/* Go on from a caller to the function that it called.  Begins as {0} at the outermost frame.  The
 * outermost phase counts; inside an optimizer, which may call a closure, the inner one. */
void prb_phase_enter(struct prb_phase_state *state, enum prb_phase function);

#endif
