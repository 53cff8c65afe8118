/* GET /api/v1/skills: what POST /api/v1/p/{}/skills/NAME can run. */
#include "format/json.h"
#include "serve/http/route.h"

PRB_DEFINE_AUTO_PTR(prb_skills, struct prb_skills, prb_skills_free)

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    PRB_AUTO(prb_skills) struct prb_skills *skills = prb_skills_find(NULL, err);
    if (!skills)
        return false;
    json_t *rows = json_array();
    for (size_t i = 0; i < skills->count; i++)
        json_array_append_new(rows, json_pack("{s:o,s:o,s:b}", "name",
                                              prb_json_text(skills->items[i]->name), "description",
                                              prb_json_text(skills->items[i]->description),
                                              "built_in", !skills->items[i]->path));
    return prb_answer_json(job->answer, json_pack("{s:o}", "skills", rows), err);
}

const struct prb_route prb_route_skills = {
    .methods = PRB_GET,
    .path = "/api/v1/skills",
    .summary = "what to look for: the skills",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .seconds = 10,
    .answer = answer,
};
