/*
 * Variables of functions, watched from outside: "loss@train" is the variable loss of the innermost
 * frame of a function train, read again and again.  Nothing runs in the target.
 *
 * A value counts if its frame stood, and its variable referred to the same object, before and after
 * the value was read: so the object lived meanwhile.  What the step clock said before and after must
 * agree, too.
 */
#ifndef PRB_TRAINING_VARIABLES_H
#define PRB_TRAINING_VARIABLES_H

#include "inspect/target.h"
#include "training/clock.h"
#include "training/watched.h"

struct prb_variable_value {
    size_t watched; /* index */
    double at;      /* s since the epoch */
    uint64_t native_id;
    const char *function; /* co_name */
    const char *type;     /* "torch.Tensor" */
    const char *text;     /* what repr() prints, cut at 256 characters */
    double number;        /* NAN: it is none; of a tensor with one element its value */
    int64_t step;         /* of the clock; -1: none serves */
};

struct prb_variable_values {
    struct prb_variable_value *items; /* as they were read; equal neighbours once */
    size_t count, cap;
    uint64_t dropped;      /* read while they changed */
    const char *clock;     /* its name; NULL: none serves */
    const char *functions; /* some of those on the stacks, for who watches none of them */
    struct prb_arena arena;
};
void prb_variable_values_deinit(struct prb_variable_values *values);
PRB_DEFINE_AUTO(prb_variable_values, struct prb_variable_values, prb_variable_values_deinit)

/* Called between two samples; false ends the run. */
typedef bool prb_variables_go_on_fn(void *context);

/* Watch the first runtime of a live target for so long (s) at a rate (1/s).  clock may be NULL. */
bool prb_variables_watch(struct prb_target *target, struct prb_watched *watched, size_t count,
                         double seconds, double rate, struct prb_step_clock *clock,
                         prb_variables_go_on_fn *go_on, void *context,
                         struct prb_variable_values *out, struct prb_error *err);

#endif
