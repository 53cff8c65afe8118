/* The tables that a command reads: see database.h. */
#include "cli/look/database.h"

#include "cli/print/out.h"

void prb_database_close(struct prb_database *database)
{
    prb_db_close(database->db); /* it borrows the others */
    prb_target_close(database->target);
    prb_many_free(database->many);
    prb_profile_free(database->profile);
    *database = (struct prb_database){0};
}

static bool open_stored(const char *job, struct prb_database *out, struct prb_error *err)
{
    char note[PRB_NOTE_MAX];
    out->db = prb_db_open_stored(job, note, err);
    if (out->db && *note)
        prb_out_note(note);
    return out->db;
}

/* What no process answers to, a job in the store may: else err stays as it was. */
static bool open_ended(const char *job, struct prb_database *out, struct prb_error *err)
{
    struct prb_error why = {0};
    if (err->code != PRB_NOT_FOUND || !open_stored(job, out, &why)) {
        if (why.code && why.code != PRB_NOT_FOUND)
            *err = why;
        return false;
    }
    *err = (struct prb_error){0};
    return true;
}

/* A process that ended may have left tables, here or in the store; a file may be a profile. */
static bool open_one(const struct prb_run *run, struct prb_database *out, struct prb_error *err)
{
    const char *word = prb_run_word(run), *ended = prb_run_ended(run);
    if (word && prb_store_is(word))
        return open_stored(word, out, err);
    const char *saved = prb_run_profile(run);
    if (saved)
        return (out->profile = prb_profile_open(saved, err)) &&
               (out->db = prb_db_open_profile(out->profile, err));
    if (ended)
        return (out->db = prb_db_open_ended(ended, err)) || open_ended(ended, out, err);
    bool wanted = prb_run_has_target(run) || run->command->target == PRB_USES_TARGET;
    if (wanted && !(out->target = prb_run_open(run, err)))
        return word && open_ended(word, out, err);
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
