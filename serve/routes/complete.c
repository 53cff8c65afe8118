/* POST /api/v1/p/{}/complete {"text": "…", "cursor": 3}: the names that complete it. */
#include "format/json.h"
#include "inject/control.h"
#include "inject/inject.h"
#include "serve/work/targets.h"

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)
PRB_DEFINE_AUTO(prb_strings, struct prb_strings, prb_strings_free)

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16];
    struct prb_inject_report report;
    PRB_AUTO(prb_strings) struct prb_strings names = {0};
    json_auto_t *body = prb_question_object(job, err);
    if (!body || !prb_serve_target_process(job, target, err))
        return false;
    const json_t *text = json_object_get(body, "text"), *cursor = json_object_get(body, "cursor");
    size_t len = json_string_length(text);
    size_t at = cursor ? (size_t)json_integer_value(cursor) : len;
    uint64_t thread = (uint64_t)json_integer_value(json_object_get(body, "thread"));
    if (at > len)
        return prb_fail(err, PRB_USAGE, "the cursor stands behind the text");
    PRB_AUTO(prb_control)
    struct prb_control *control = prb_ensure_probe((pid_t)strtol(target, NULL, 10), &report, err);
    if (!control ||
        !prb_control_complete(control, json_string_value(text), at, thread, &names, err))
        return false;
    json_t *list = json_array();
    for (size_t i = 0; i < names.count; i++)
        json_array_append_new(list, prb_json_text(names.items[i]));
    return prb_answer_json(job->answer, json_pack("{s:o}", "completions", list), err);
}

const struct prb_route prb_route_complete = {
    .methods = PRB_POST,
    .path = "/api/v1/p/{}/complete",
    .summary = "names that complete what was typed",
    .grant = PRB_MAY_EVAL,
    .formats = "json",
    .body = "text! cursor thread",
    .slow = true,
    .seconds = 10,
    .answer = answer,
};
