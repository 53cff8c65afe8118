/* Evaluations that run: by the name that who asked gave them, DELETE ends one. */
#ifndef PRB_SERVE_EVALUATIONS_H
#define PRB_SERVE_EVALUATIONS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

/* One of them; in its worker's frame while it runs. */
struct prb_evaluation {
    struct prb_evaluation *next;
    const char *target, *id;
    atomic_bool cancelled;
};

/* BUSY: one of that name runs in this target. */
bool prb_evaluation_enter(struct prb_evaluation *one, struct prb_error *err);
void prb_evaluation_leave(struct prb_evaluation *one);
/* NOT_FOUND: none of that name runs. */
bool prb_evaluation_cancel(const char *target, const char *id, struct prb_error *err);

#endif
