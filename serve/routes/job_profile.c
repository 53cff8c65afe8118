/* GET /api/v1/jobs/{}/profile: where the time of all ranks goes, as one tree; `probing -t @JOB profile`. */
#include <string.h>

#include "base/clock.h"
#include "serve/routes/job_roster.h"
#include "serve/routes/profile_file.h"

#define START_SECONDS 15 /* beside those that it takes */
#define SECONDS_MOST 60.0

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    double seconds = 5, rate = 100;
    bool native, idle;
    char duration[32], hertz[32];
    const char *mode = prb_question_value(job->question, "mode");
    enum prb_profile_mode known;
    if (!prb_question_number(job->question, "seconds", 0.1, SECONDS_MOST, &seconds, err) ||
        !prb_question_number(job->question, "rate", 1, 1000, &rate, err) ||
        !prb_question_flag(job->question, "native", &native, err) ||
        !prb_question_flag(job->question, "idle", &idle, err))
        return false;
    if (mode && !prb_run_mode(mode, &known))
        return prb_fail(err, PRB_USAGE, "mode is active, wall, cpu or gil, not \"%.40s\"", mode);
    snprintf(duration, sizeof duration, "%g", seconds);
    snprintf(hertz, sizeof hertz, "%g", rate);
    const char *words[16] = {NULL,  NULL,       "profile",   "--duration", duration, "--rate",
                             hertz, "--format", job->format, "--output",   "-"};
    size_t count = 11;
    if (native)
        words[count++] = "--native";
    if (mode || idle) {
        words[count++] = "--mode";
        words[count++] = mode ? mode : "wall";
    }
    job->until = prb_clock_s() + seconds + START_SECONDS;
    bool ok = prb_serve_job_answer(job, words, err);
    if (strcmp(job->format, "json") != 0)
        job->answer->type = prb_profile_media_type(job->format);
    return ok;
}

const struct prb_route prb_route_job_profile = {
    .methods = PRB_GET,
    .path = "/api/v1/jobs/{}/profile",
    .summary = "where the time of all ranks goes, as one tree; with the coverage",
    .grant = PRB_MAY_LOOK,
    .formats = "json collapsed flamegraph pprof",
    .parameters = "seconds rate native idle mode",
    .slow = true,
    .seconds = 20,
    .answer = answer,
};
