/* GET /api/v1/p/{}/history?after=-600: what the server saw of a process by itself. */
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "serve/doors/life.h"
#include "serve/live/watch.h"
#include "serve/work/targets.h"

/* Seconds since the epoch; 0 and less: from now on. */
static double moment(double time) { return time > 0 ? time : prb_clock_epoch_s() + time; }

/* Nobody has looked at it: it has ended, it is not ours to look at, or it is too new. */
static bool never_seen(const struct prb_serve_job *job, struct prb_error *err)
{
    struct prb_error why = {0};
    struct prb_serve_target *held = prb_serve_target_hold(job, &why);
    if (held)
        prb_serve_target_release(held);
    else if (why.code == PRB_PERMISSION || why.code == PRB_GONE)
        *err = why;
    return false;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *text = job->part[0];
    double after = -PRB_WATCH_MOMENTS * PRB_WATCH_EVERY, until = 0;
    char *end;
    if (!prb_question_number(job->question, "after", -1e9, 1e11, &after, err) ||
        !prb_question_number(job->question, "until", -1e9, 1e11, &until, err))
        return false;
    long pid = strtol(text, &end, 10);
    uint64_t started = *end == '.' ? strtoull(end + 1, &end, 10) : 0;
    if (*text < '1' || *text > '9' || *end || pid > INT_MAX)
        return prb_fail(err, PRB_NOT_FOUND, "\"%.60s\" is no process: PID or PID.STARTTIME", text);
    double last = 0;
    if (!prb_serve_check_has(job->serve, (pid_t)pid, err))
        return false;
    json_t *value = prb_watch_history(job->serve->watch, (pid_t)pid, started, moment(after),
                                      moment(until), &last, err);
    snprintf(job->answer->next, sizeof job->answer->next, "%.17g", last);
    return value ? prb_answer_json(job->answer, value, err) : never_seen(job, err);
}

const struct prb_route prb_route_history = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/history",
    .summary = "the last ten minutes of a process: stacks that changed, CPU, memory, step",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "after until",
    .seconds = 10,
    .answer = answer,
};
