/* probing -t @JOB skill run. */
#include "cli/fleet/skills.h"

#include "cli/fleet/job.h"
#include "cli/print/out.h"
#include "fleet/skills.h"

static void print_one(const struct prb_job_finding *one, bool named, unsigned of)
{
    prb_out_finding_begin(one->severity);
    if (one->ranks.count) {
        prb_out_ranks(stdout, &one->ranks, of);
        fputs(": ", stdout);
    }
    printf("%s%s", named ? one->skill : "", named ? ": " : "");
    prb_out_text(stdout, one->finding);
    if (one->differ)
        printf(" (rank %d; the others alike)", prb_rank_set_next(&one->ranks, -1));
    prb_out_finding_end(one->where, one->next);
}

static void print(const struct prb_run *run, const struct prb_job_skills *how,
                  const struct prb_job_diagnosis *diagnosis)
{
    for (size_t i = 0; i < diagnosis->count; i++)
        print_one(&diagnosis->findings[i], !how->name, (unsigned)diagnosis->coverage.count);
    if (!diagnosis->count)
        puts("Nothing was found.");
    if (diagnosis->left_out)
        printf("%zu more findings are left out.\n", diagnosis->left_out);
    if (run->verbose && *diagnosis->note)
        prb_out_note(diagnosis->note);
    prb_out_coverage(&diagnosis->coverage);
}

bool prb_job_skills(const struct prb_run *run, const struct prb_job_skills *how,
                    struct prb_error *err)
{
    const struct prb_job_diagnose_options options = {.name = how->name, .seconds = how->seconds};
    PRB_AUTO(prb_fleet)
    struct prb_fleet *fleet = prb_run_open_job_for(run, prb_job_diagnose_budget(&options), err);
    PRB_AUTO(prb_job_diagnosis) struct prb_job_diagnosis diagnosis = {0};
    if (!fleet || !prb_job_diagnose(fleet, &options, &diagnosis, err) ||
        !prb_run_covered(run, &diagnosis.coverage, err))
        return false;
    if (!*run->status && diagnosis.count && diagnosis.findings[0].severity == PRB_SEVERITY_HIGH)
        *run->status = 1;
    if (how->json)
        prb_job_diagnosis_json(&diagnosis, stdout);
    else
        print(run, how, &diagnosis);
    return true;
}
