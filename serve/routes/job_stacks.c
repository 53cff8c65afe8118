/* GET /api/v1/jobs/{}/stacks: stacks of all ranks, merged, the odd ones first; `probing -t @JOB backtrace`. */
#include <string.h>

#include "serve/routes/job_roster.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *words[10] = {NULL, NULL, "backtrace"};
    const char *by = prb_question_value(job->question, "by");
    size_t count = 3;
    bool native, locals;
    if (!prb_question_flag(job->question, "native", &native, err) ||
        !prb_question_flag(job->question, "locals", &locals, err))
        return false;
    if (by && strcmp(by, "function") != 0 && strcmp(by, "line") != 0)
        return prb_fail(err, PRB_USAGE, "by is line or function, not \"%.40s\"", by);
    if (native)
        words[count++] = "--native";
    if (locals)
        words[count++] = "--locals";
    if (by && strcmp(by, "function") == 0)
        words[count++] = "--by=function";
    if (strcmp(job->format, "json") == 0)
        words[count++] = "--json";
    return prb_serve_job_answer(job, words, err);
}

const struct prb_route prb_route_job_stacks = {
    .methods = PRB_GET,
    .path = "/api/v1/jobs/{}/stacks",
    .summary = "stacks of all ranks, merged, the odd ones first; with the coverage",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .parameters = "native locals by every for",
    .slow = true,
    .seconds = 20,
    .answer = answer,
};
