/* POST /api/v1/p/{}/eval {"code": "…"}: run Python code in the target, as `probing eval` does. */
#include <string.h>

#include "base/clock.h"
#include "format/json.h"
#include "inject/control.h"
#include "inject/inject.h"
#include "serve/routes/evaluate.h"
#include "serve/work/evaluations.h"
#include "serve/work/targets.h"

#define OUTPUT_MAX (8u << 20)
#define LONGEST 300.0

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)
PRB_DEFINE_AUTO(prb_eval_result, struct prb_eval_result, prb_eval_result_free)

struct evaluation {
    struct prb_evaluation listed;
    struct prb_serve_job *job;
    struct prb_buf output;
};

/* What is more than the bound is left out; the code runs on. */
static bool take(void *context, int stream, const char *text, size_t len)
{
    struct evaluation *evaluation = context;
    size_t room = OUTPUT_MAX - evaluation->output.len;
    (void)stream;
    if (len > room)
        evaluation->job->answer->truncated = true;
    prb_buf_add(&evaluation->output, text, len < room ? len : room);
    return prb_buf_ok(&evaluation->output);
}

static bool is_cancelled(void *context)
{
    struct evaluation *evaluation = context;
    return atomic_load(&evaluation->listed.cancelled) || !prb_serve_job_goes_on(evaluation->job);
}

static bool run(struct evaluation *evaluation, struct prb_control *control, const json_t *body,
                struct prb_eval_result *result, struct prb_error *err)
{
    const json_t *code = json_object_get(body, "code");
    const struct prb_eval_options options = {
        .mode = PRB_EVAL_AUTO,
        .code = json_string_value(code),
        .code_len = json_string_length(code),
        .name_space = json_string_value(json_object_get(body, "namespace")),
        .thread = (uint64_t)json_integer_value(json_object_get(body, "thread")),
        .frame = (unsigned)json_integer_value(json_object_get(body, "frame")),
        .output = take,
        .cancelled = is_cancelled,
        .context = evaluation,
    };
    return prb_control_eval(control, &options, result, err);
}

static json_t *tell(struct evaluation *evaluation, const struct prb_eval_result *result)
{
    const char *text = result->text ? result->text : "";
    bool value = !result->raised && !result->none;
    return json_pack("{s:o,s:o,s:o,s:f,s:b}", "value", value ? prb_json_text(text) : json_null(),
                     "output",
                     prb_json_text(evaluation->output.data ? evaluation->output.data : ""),
                     "raised", result->raised ? prb_json_text(text) : json_null(), "seconds",
                     result->seconds, "truncated", evaluation->job->answer->truncated);
}

json_t *prb_serve_evaluate(struct prb_serve_job *job, const json_t *body, struct prb_error *err)
{
    char target[16];
    const char *id = json_string_value(json_object_get(body, "id"));
    const json_t *seconds = json_object_get(body, "timeout");
    struct evaluation one = {.listed = {.target = target, .id = id ? id : ""}, .job = job};
    struct prb_inject_report report;
    PRB_AUTO(prb_eval_result) struct prb_eval_result result = {0};
    json_t *told = NULL;
    double wanted = seconds ? json_number_value(seconds) : 0;
    snprintf(job->did, sizeof job->did, "%s", json_string_value(json_object_get(body, "code")));
    if (!prb_serve_target_process(job, target, err))
        return NULL;
    if (seconds)
        job->until = prb_clock_s() + (wanted < LONGEST ? wanted : LONGEST);
    pid_t pid = (pid_t)strtol(target, NULL, 10);
    PRB_AUTO(prb_control) struct prb_control *control = prb_ensure_probe(pid, &report, err);
    if (!control || !prb_evaluation_enter(&one.listed, err))
        return NULL;
    bool ok = run(&one, control, body, &result, err);
    prb_evaluation_leave(&one.listed);
    if (!ok)
        prb_explain_gil(pid, err);
    else if (!(told = tell(&one, &result)))
        prb_nomem(err);
    prb_buf_deinit(&one.output);
    return told;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    json_auto_t *body = prb_question_object(job, err);
    json_t *told = body ? prb_serve_evaluate(job, body, err) : NULL;
    return told && prb_answer_json(job->answer, told, err);
}

const struct prb_route prb_route_eval = {
    .methods = PRB_POST,
    .path = "/api/v1/p/{}/eval",
    .summary = "run Python code in the target",
    .grant = PRB_MAY_EVAL,
    .formats = "json",
    .body = "code! thread frame namespace timeout id",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
