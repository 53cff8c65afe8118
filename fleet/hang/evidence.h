/* What is known of one process for the question whether it hangs: two views of it, as JSON. */
#ifndef PRB_FLEET_EVIDENCE_H
#define PRB_FLEET_EVIDENCE_H

#include <jansson.h>

#include "fleet/hang.h"

struct prb_evidence_options {
    double every;  /* s between the views */
    int views;     /* how many, at least 2 */
    double budget; /* s for all of it */
    bool deep;     /* load a probe where there is none, for the recorder */
};
/*
 * An object: kind, state, wchan, moved, looped, works, span, cpu, operation, site, inside, holder,
 * frames [[name, file, line]], groups [[name, sequence, open, operation, sizes, begun]] or null.
 * Errors: those of prb_stacks_take.
 */
json_t *prb_evidence_take(struct prb_target *target, const struct prb_evidence_options *options,
                          struct prb_error *err);
/* The same as a struct; what has another form is CORRUPT.  Texts point into the object. */
bool prb_evidence_read(const json_t *object, struct prb_hang_rank *out, struct prb_error *err);

/* signs.c: what a thread is at.  spins: it waits by spinning. */
enum prb_hang_kind prb_hang_kind_of(const struct prb_thread *thread, bool *spins);
/* The collective that it is in, "all_reduce"; "" when that cannot be said. */
void prb_hang_operation(const struct prb_thread *thread, char *out, size_t size);
/* The innermost Python frame of the program's own code, else of any; NULL: none. */
const struct prb_frame *prb_hang_own_frame(const struct prb_thread *thread);

/* recorder.c: what a probe of the process says of its groups, an array, or NULL. */
json_t *prb_evidence_groups(pid_t pid, bool load, double seconds);

#endif
