/* The tables that a command reads: of the target, of what an ended one left, of a saved profile, or
 * of several processes. */
#ifndef PRB_CLI_DATABASE_H
#define PRB_CLI_DATABASE_H

#include "cli/look/many.h"

struct prb_database {
    struct prb_db *db;
    struct prb_target *target;   /* or NULL */
    struct prb_many *many;       /* or NULL */
    struct prb_profile *profile; /* or NULL */
};

/* Open what the user named; with ranks or subprocesses all that these mean. */
bool prb_database_open(const struct prb_run *run, bool ranks, bool subprocesses,
                       struct prb_database *out, struct prb_error *err) PRB_MUST_CHECK;
/* Begins as {0}. */
void prb_database_close(struct prb_database *database);
PRB_DEFINE_AUTO(prb_database, struct prb_database, prb_database_close)

#endif
