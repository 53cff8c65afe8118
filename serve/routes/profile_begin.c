/* POST /api/v1/profiles {"target": "4711", "seconds": 30}: begin one, which can be read while it is taken. */
#include <stdlib.h>
#include <string.h>

#include "serve/live/runs.h"
#include "serve/work/targets.h"

static bool take_number(const json_t *body, const char *name, double least, double most,
                        double *out, struct prb_error *err)
{
    const json_t *value = json_object_get(body, name);
    double number = value ? json_number_value(value) : *out;
    if (!(number >= least && number <= most))
        return prb_fail(err, PRB_USAGE, "%s is a number from %g to %g", name, least, most);
    *out = number;
    return true;
}

static bool begin(struct prb_serve_job *job, const json_t *body, struct prb_error *err)
{
    struct prb_run_options options = {.seconds = 30, .rate = 100};
    char target[16], id[PRB_RUN_NAME];
    const char *mode = json_string_value(json_object_get(body, "mode"));
    snprintf(job->part[0], sizeof job->part[0], "%s",
             json_string_value(json_object_get(body, "target")));
    if (!take_number(body, "seconds", 0.1, PRB_SERVE_PROFILE_SECONDS_MAX, &options.seconds, err) ||
        !take_number(body, "rate", 1, 1000, &options.rate, err))
        return false;
    if (mode && !prb_run_mode(mode, &options.mode))
        return prb_fail(err, PRB_USAGE, "mode is active, wall, cpu or gil, not \"%.40s\"", mode);
    if (!prb_serve_target_process(job, target, err))
        return false;
    options.native = json_is_true(json_object_get(body, "native"));
    options.pid = (pid_t)strtol(target, NULL, 10);
    if (!prb_runs_begin(job->serve->runs, &options, id, err))
        return false;
    struct prb_run *run = prb_run_hold(job->serve->runs, id, err);
    if (!run) {
        prb_runs_end(job->serve->runs, id, NULL);
        return false;
    }
    json_t *facts = prb_run_facts(run);
    prb_run_release(run);
    job->answer->status = 201;
    return prb_answer_json(job->answer, facts, err);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    json_t *body = prb_question_object(job, err);
    bool ok = body && begin(job, body, err);
    json_decref(body);
    return ok;
}

const struct prb_route prb_route_profile_begin = {
    .methods = PRB_POST,
    .path = "/api/v1/profiles",
    .summary = "begin a profile, which can be read while it is taken",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .body = "target! seconds rate mode native",
    .slow = true,
    .seconds = 10,
    .answer = answer,
};
