/* GET /api/v1/profiles/{}: what was sampled so far, as numbers (runs.h) or as a file. */
#include <stdio.h>
#include <string.h>

#include "serve/routes/profile_file.h"

/* "FRAMES.NODES.THREADS.STAMP", of an answer before. */
static bool take_place(const struct prb_serve_job *job, struct prb_run_place *out,
                       struct prb_error *err)
{
    const char *text = prb_question_value(job->question, "from");
    char rest;
    return !text ||
           sscanf(text, "%u.%u.%u.%u%c", &out->frames, &out->nodes, &out->threads, &out->stamp,
                  &rest) == 4 ||
           prb_fail(err, PRB_USAGE, "from is what an answer before gave as next");
}

static bool tell(struct prb_serve_job *job, struct prb_run *run, struct prb_run_place *place,
                 struct prb_error *err)
{
    struct prb_answer *answer = job->answer;
    json_t *value = prb_run_increment(run, place);
    snprintf(answer->next, sizeof answer->next, "%u.%u.%u.%u", place->frames, place->nodes,
             place->threads, place->stamp);
    json_object_set_new(value, "next", json_string(answer->next));
    return prb_answer_json(answer, value, err);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    struct prb_run_place place = {0};
    if (!take_place(job, &place, err))
        return false;
    struct prb_run *run = prb_run_hold(job->serve->runs, job->part[0], err);
    if (!run)
        return false;
    bool ok = strcmp(job->format, "json") == 0
                  ? tell(job, run, &place, err)
                  : prb_answer_profile(job, prb_run_profile(run), NULL, err);
    prb_run_release(run);
    return ok;
}

const struct prb_route prb_route_profile_one = {
    .methods = PRB_GET,
    .path = "/api/v1/profiles/{}",
    .summary = "what a profile has sampled so far",
    .grant = PRB_MAY_LOOK,
    .formats = "json speedscope flamegraph collapsed pprof perfetto chrome firefox heatmap",
    .parameters = "from",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
