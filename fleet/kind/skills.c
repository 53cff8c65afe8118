/* What skills find in each rank.  args: skills (names of ours; absent: all that look at one running
 * process), seconds (how long to look; 0: as they say).  result: struct prb_rank_objects: the
 * findings, as prb_diagnosis_json has them, and what could not be looked at as {"note"}. */
#include <string.h>

#include "base/error.h"
#include "fleet/kind/answers.h"

#define LEAST 0.5
#define MOST 60.0

PRB_DEFINE_AUTO_PTR(prb_skills, struct prb_skills, prb_skills_free)
PRB_DEFINE_AUTO_PTR(prb_diagnosis, struct prb_diagnosis, prb_diagnosis_free)

/* Ours alone: what a user wrote is read by the command that the user gives. */
static bool is_wanted(const struct prb_skill *skill, const json_t *names)
{
    const json_t *name;
    size_t i;
    if (skill->path || skill->ranks)
        return false;
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        if (text && strcmp(text, skill->name) == 0)
            return true;
    }
    return !names && strcmp(skill->name, "crash") != 0;
}

static bool add_findings(const struct prb_diagnosis *diagnosis, struct prb_buf *out,
                         struct prb_error *err)
{
    PRB_AUTO_FREE char *text = prb_diagnosis_json(diagnosis, err);
    PRB_AUTO(json_t) json_t *told = text ? json_loads(text, 0, NULL) : NULL;
    json_t *rows = json_object_get(told, "findings");
    const json_t *note;
    size_t i;
    json_array_foreach(json_object_get(told, "notes"), i, note)
        json_array_append_new(rows, json_pack("{s:O}", "note", note));
    PRB_AUTO_FREE char *all = rows ? json_dumps(rows, JSON_COMPACT) : NULL;
    if (!all)
        return text ? prb_nomem(err) : false;
    prb_buf_adds(out, all);
    return prb_buf_ok(out) || prb_nomem(err);
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    double seconds = json_number_value(json_object_get(args, "seconds"));
    const struct prb_diagnose_options how = {.seconds =
                                                 seconds >= LEAST && seconds <= MOST ? seconds : 0};
    struct prb_target *target = prb_fleet_seat_target(seat, err);
    PRB_AUTO(prb_skills) struct prb_skills *skills = target ? prb_skills_find(NULL, err) : NULL;
    PRB_AUTO_FREE const struct prb_skill **chosen =
        skills ? calloc(skills->count + 1, sizeof *chosen) : NULL;
    size_t count = 0;
    if (!chosen)
        return skills ? prb_nomem(err) : false;
    for (size_t i = 0; i < skills->count; i++)
        if (is_wanted(skills->items[i], json_object_get(args, "skills")))
            chosen[count++] = skills->items[i];
    PRB_AUTO(prb_diagnosis)
    struct prb_diagnosis *diagnosis = prb_diagnose(target, NULL, chosen, count, &how, err);
    return diagnosis && add_findings(diagnosis, out, err);
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    (void)args;
    return prb_objects_of_host(result, reply, err);
}

const struct prb_fleet_kind prb_fleet_kind_skills = {
    .name = "skills",
    .budget = 40,
    .pace = PRB_FLEET_LONG,
    .of_rank = of_rank,
    .at_root = at_root,
};
