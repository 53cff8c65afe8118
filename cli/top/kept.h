/* The view "steps" of a job that is gone: the last steps that its tables or the store keep. */
#ifndef PRB_CLI_KEPT_H
#define PRB_CLI_KEPT_H

#include "cli/top/steps.h"

struct prb_kept_steps {
    struct prb_steps_row *rows; /* a row of each process, by rank */
    size_t count;
};

/* job: how the user named it.  Errors: NOT_FOUND (no steps were recorded). */
bool prb_kept_steps_read(struct prb_db *db, const char *job, struct prb_kept_steps *out,
                         struct prb_error *err) PRB_MUST_CHECK;
/* Begins as {0}. */
void prb_kept_steps_free(struct prb_kept_steps *steps);
PRB_DEFINE_AUTO(prb_kept_steps, struct prb_kept_steps, prb_kept_steps_free)

#endif
