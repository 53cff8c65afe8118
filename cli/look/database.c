/* The tables that a command reads: see database.h. */
#include "cli/look/database.h"

void prb_database_close(struct prb_database *database)
{
    prb_db_close(database->db); /* it borrows the others */
    prb_target_close(database->target);
    prb_many_free(database->many);
    prb_profile_free(database->profile);
    *database = (struct prb_database){0};
}

/* A process that ended may have left tables; a file may be a profile. */
static bool open_one(const struct prb_run *run, struct prb_database *out, struct prb_error *err)
{
    const char *ended = prb_run_ended(run), *saved = prb_run_profile(run);
    if (saved)
        return (out->profile = prb_profile_open(saved, err)) &&
               (out->db = prb_db_open_profile(out->profile, err));
    if (ended)
        return (out->db = prb_db_open_ended(ended, err));
    bool wanted = prb_run_has_target(run) || run->command->target == PRB_USES_TARGET;
    if (wanted && !(out->target = prb_run_open(run, err)))
        return false;
    return (out->db = prb_db_open(out->target, err));
}

bool prb_database_open(const struct prb_run *run, bool ranks, bool subprocesses,
                       struct prb_database *out, struct prb_error *err)
{
    if (!ranks && !subprocesses)
        return open_one(run, out, err);
    return (out->many = prb_many_open(run, ranks, subprocesses, err)) &&
           (out->db = prb_many_db(out->many, err));
}
