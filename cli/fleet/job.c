/* See job.h. */
#include "cli/fleet/job.h"

#include "cli/options.h"
#include "cli/print/out.h"
#include "fleet/sql.h"

#define LONGEST 3600.0 /* s */

bool prb_run_job_timeout(const struct prb_run *run, double *out, struct prb_error *err)
{
    const char *text = run->globals[PRB_GLOBAL_TIMEOUT].text;
    char *end = NULL;
    *out = text ? strtod(text, &end) : 0;
    if (text && (end == text || *end || !(*out >= PRB_SECONDS_LEAST) || *out > LONGEST))
        return prb_usage(run, err, "--timeout is a number of seconds from %g to %g, not \"%s\"",
                         PRB_SECONDS_LEAST, LONGEST, text);
    return true;
}

static struct prb_fleet *open_job(const struct prb_run *run, const char *address,
                                  struct prb_fleet_options options, struct prb_error *err)
{
    double timeout;
    if (!prb_run_job_timeout(run, &timeout, err))
        return NULL;
    options.bus = run->globals[PRB_GLOBAL_BUS].text;
    if (timeout > 0)
        options.budget = timeout;
    struct prb_fleet *fleet = prb_fleet_open(address, &options, err);
    const char *note = fleet ? prb_fleet_info(fleet)->note : NULL;
    if (note)
        prb_out_note(note);
    return fleet;
}

struct prb_fleet *prb_run_open_job(const struct prb_run *run, struct prb_error *err)
{
    return prb_run_open_job_for(run, 0, err);
}

struct prb_fleet *prb_run_open_job_for(const struct prb_run *run, double budget,
                                       struct prb_error *err)
{
    return prb_run_open_job_while(run, budget, NULL, NULL, err);
}

struct prb_fleet *prb_run_open_job_while(const struct prb_run *run, double budget,
                                         bool (*go_on)(void *context), void *context,
                                         struct prb_error *err)
{
    const struct prb_fleet_options options = {.budget = budget, .go_on = go_on, .context = context};
    return open_job(run, prb_run_job(run), options, err);
}

struct prb_fleet *prb_run_open_job_over(const struct prb_run *run, const char *address,
                                        struct prb_error *err)
{
    return open_job(run, address, (struct prb_fleet_options){.over = true}, err);
}

struct prb_fleet *prb_run_open_job_here(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_fleet_options options = {.local = true};
    struct prb_fleet *fleet = prb_fleet_open(prb_run_job(run), &options, err);
    if (!fleet && err && err->code == PRB_NOT_FOUND)
        snprintf(err->remedy, sizeof err->remedy,
                 "%s needs a process of this host; `probing cluster ranks` says where a rank is",
                 run->command->name);
    return fleet;
}

struct prb_db *prb_run_job_db(const struct prb_run *run, struct prb_fleet **fleet_out,
                              struct prb_coverage *coverage, struct prb_error *err)
{
    bool strict = run->globals[PRB_GLOBAL_STRICT].count;
    *fleet_out = prb_run_open_job(run, err);
    return *fleet_out ? prb_fleet_db(*fleet_out, strict, coverage, err) : NULL;
}

bool prb_run_covered(const struct prb_run *run, const struct prb_coverage *coverage,
                     struct prb_error *err)
{
    struct prb_error why = {0};
    if (prb_coverage_check(coverage, &why))
        return true;
    *run->status = prb_code_exit(why.code);
    if (!run->globals[PRB_GLOBAL_STRICT].count)
        return true;
    *err = why;
    return false;
}

void prb_out_coverage(const struct prb_coverage *coverage)
{
    PRB_AUTO_FREE char *line = prb_coverage_line(coverage);
    if (line)
        prb_out_note(line);
}

void prb_out_ranks(FILE *out, const struct prb_rank_set *ranks, unsigned of)
{
    PRB_AUTO_FREE char *text = prb_rank_set_text(ranks);
    unsigned count = prb_rank_set_size(ranks);
    if (count == 1)
        fprintf(out, "rank %s", text ? text : "?");
    else
        fprintf(out, "ranks %s (%u of %u)", text ? text : "?", count, of);
}
