/* GET /api/v1/p/{}/profile?seconds=5&format=speedscope: a profile of the next seconds, as a file. */
#include "base/clock.h"
#include "serve/routes/by_command.h"
#include "serve/routes/profile_file.h"
#include "serve/work/targets.h"

#define START_SECONDS 10 /* beside those that it takes */

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    double seconds = 5, rate = 100;
    bool native, idle;
    char duration[32], hertz[32];
    if (!prb_question_number(job->question, "seconds", 0.1, PRB_SERVE_PROFILE_SECONDS_MAX, &seconds,
                             err) ||
        !prb_question_number(job->question, "rate", 1, 1000, &rate, err) ||
        !prb_question_flag(job->question, "native", &native, err) ||
        !prb_question_flag(job->question, "idle", &idle, err))
        return false;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    char target[4096];
    snprintf(target, sizeof target, "%s", prb_serve_target_name(held));
    prb_serve_target_release(PRB_STEAL(held)); /* others may look meanwhile */
    snprintf(duration, sizeof duration, "%g", seconds);
    snprintf(hertz, sizeof hertz, "%g", rate);
    const char *words[16] = {"-t",  target,     "profile",   "--duration", duration, "--rate",
                             hertz, "--format", job->format, "--output",   "-"};
    size_t count = 11;
    if (native)
        words[count++] = "--native";
    if (idle)
        words[count++] = "--idle";
    job->until = prb_clock_s() + seconds + START_SECONDS;
    return prb_answer_by_command(job, words, prb_profile_media_type(job->format), err);
}

const struct prb_route prb_route_profile = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/profile",
    .summary = "where the time goes, for so many seconds",
    .grant = PRB_MAY_LOOK,
    .formats = "speedscope flamegraph collapsed pprof perfetto chrome firefox heatmap",
    .parameters = "seconds rate native idle",
    .slow = true,
    .seconds = 10,
    .answer = answer,
};
