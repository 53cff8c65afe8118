/* See skills.h. */
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "fleet/objects.h"
#include "fleet/skills/findings.h"
#include "fleet/sql.h"

PRB_DEFINE_AUTO_PTR(prb_skills, struct prb_skills, prb_skills_free)
PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)
PRB_DEFINE_AUTO_PTR(prb_diagnosis, struct prb_diagnosis, prb_diagnosis_free)

#define LONGEST 60.0 /* s that all skills of one process take */
#define HANG "hang"  /* of all ranks there is one verdict */
#define COMM "comm"
#define CRASH "crash"

double prb_job_diagnose_budget(const struct prb_job_diagnose_options *options)
{
    return (options->seconds > 0 ? 2 * options->seconds : 0) + LONGEST;
}

/* The first that not all answered is the one to tell. */
static void cover(struct prb_job_diagnosis *out, struct prb_coverage *coverage)
{
    if (out->coverage.count && !prb_coverage_whole(&out->coverage))
        return;
    if (out->coverage.count && prb_coverage_whole(coverage))
        return;
    struct prb_coverage other = out->coverage;
    out->coverage = *coverage;
    *coverage = other;
}

/* Whether each rank is asked for a skill: neither is what all ranks together say. */
static bool is_of_rank(const struct prb_skill *skill, const char *name)
{
    if (skill->path || skill->ranks || strcmp(skill->name, HANG) == 0)
        return false;
    return name ? strcmp(skill->name, name) == 0 : strcmp(skill->name, CRASH) != 0;
}

static char *args_of(const struct prb_job_diagnose_options *options,
                     const struct prb_skills *skills)
{
    json_t *names = json_array();
    for (size_t i = 0; i < skills->count; i++)
        if (is_of_rank(skills->items[i], options->name))
            json_array_append_new(names, json_string(skills->items[i]->name));
    json_t *args = json_pack("{s:f, s:o}", "seconds", options->seconds, "skills", names);
    char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
    json_decref(args);
    return text;
}

static bool judge(struct prb_fleet *fleet, const struct prb_job_diagnose_options *options,
                  struct prb_job_diagnosis *out, struct prb_error *err)
{
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    if (!prb_job_diagnosis_judge(out, fleet, options->seconds, &coverage, err))
        return false;
    cover(out, &coverage);
    return true;
}

static bool ask_ranks(struct prb_fleet *fleet, const struct prb_job_diagnose_options *options,
                      const struct prb_skills *skills, struct prb_job_diagnosis *out,
                      struct prb_error *err)
{
    PRB_AUTO(prb_rank_objects) struct prb_rank_objects objects = {0};
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO_FREE char *args = args_of(options, skills);
    if (!args)
        return prb_nomem(err);
    if (!prb_fleet_ask(fleet, "skills", args, &objects, &coverage, err))
        return false;
    cover(out, &coverage);
    prb_rank_objects_sort(&objects);
    for (size_t i = 0; i < objects.count; i++)
        for (size_t k = 0; k < json_array_size(objects.items[i].list); k++)
            if (!prb_job_diagnosis_add(out, json_array_get(objects.items[i].list, k),
                                       prb_fleet_info(fleet)->job, objects.items[i].rank, err))
                return false;
    return true;
}

/* Of the tables of all ranks; what it finds is the job's. */
static bool compare_ranks(struct prb_fleet *fleet, const struct prb_job_diagnose_options *options,
                          const struct prb_skill *comm, struct prb_job_diagnosis *out,
                          struct prb_error *err)
{
    const struct prb_diagnose_options how = {.seconds = options->seconds};
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_db) struct prb_db *db = prb_fleet_db(fleet, false, &coverage, err);
    PRB_AUTO(prb_diagnosis)
    struct prb_diagnosis *found = db ? prb_diagnose(NULL, db, &comm, 1, &how, err) : NULL;
    bool good = found;
    for (size_t i = 0; good && i < found->finding_count; i++) {
        const struct prb_finding *one = &found->findings[i];
        json_t *row = json_pack("{ss ss ss ss? ss?}", "skill", one->skill, "severity",
                                prb_severity_name(one->severity), "finding", one->finding, "where",
                                one->where, "next", one->next);
        good = prb_job_diagnosis_add(out, row, prb_fleet_info(fleet)->job, -1, err);
        json_decref(row);
    }
    if (good && found->note_count && !*out->note)
        snprintf(out->note, sizeof out->note, "%s", found->notes[0]);
    if (good)
        cover(out, &coverage);
    return good;
}

/* One of ours that a job can be asked for. */
static bool is_askable(const struct prb_skill *skill, const char *name, struct prb_error *err)
{
    return (!skill->path && strcmp(name, CRASH) != 0) ||
           prb_fail(err, PRB_USAGE, "the skill %.60s is not for all ranks of a job", name) ||
           prb_error_remedy(err, "health, hang, slow, leak, nan, overhead and comm are; this one "
                                 "is of one rank: -t @JOB:N");
}

bool prb_job_diagnose(struct prb_fleet *fleet, const struct prb_job_diagnose_options *options,
                      struct prb_job_diagnosis *out, struct prb_error *err)
{
    const char *name = options->name;
    PRB_AUTO(prb_skills) struct prb_skills *skills = prb_skills_find(NULL, err);
    const struct prb_skill *named = skills && name ? prb_skill_named(skills, name, err) : NULL;
    const struct prb_skill *comm = skills ? prb_skill_named(skills, COMM, err) : NULL;
    if (!comm || (name && (!named || !is_askable(named, name, err))))
        return false;
    bool hang = name && strcmp(name, HANG) == 0;
    if ((hang || !named) && !judge(fleet, options, out, err))
        return false;
    if (!hang && named != comm && !ask_ranks(fleet, options, skills, out, err))
        return false;
    if ((named == comm || (!named && out->coverage.count > 1)) &&
        !compare_ranks(fleet, options, comm, out, err))
        return false;
    prb_job_diagnosis_sort(out);
    return true;
}
