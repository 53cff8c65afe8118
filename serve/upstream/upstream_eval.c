/* POST /apis/pythonext/eval, the body is Python code: {"status", "output", "traceback"}, a value as
 * its last line of output. */
#include <string.h>

#include "serve/upstream/upstream.h"

#include "format/json.h"
#include "serve/routes/evaluate.h"

static json_t *lines_of(const char *text)
{
    json_t *lines = json_array();
    for (const char *at = text; at && *at;) {
        size_t len = strcspn(at, "\n");
        json_array_append_new(lines, json_stringn(at, len));
        at += len + (at[len] == '\n');
    }
    return lines;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const struct prb_buf *code = &job->question->body;
    if (!code->len || strlen(code->data) != code->len)
        return prb_fail(err, PRB_USAGE, "the body is Python code");
    json_auto_t *asked = json_pack("{s:s}", "code", code->data);
    if (!asked)
        return prb_fail(err, PRB_USAGE, "the code is not UTF-8");
    if (!prb_upstream_target(job, err))
        return false;
    json_auto_t *told = prb_serve_evaluate(job, asked, err);
    if (!told)
        return false;
    const char *value = json_string_value(json_object_get(told, "value")),
               *raised = json_string_value(json_object_get(told, "raised"));
    PRB_AUTO(prb_buf) struct prb_buf output = {0};
    prb_buf_adds(&output, json_string_value(json_object_get(told, "output")));
    if (value)
        prb_buf_addf(&output, "%s\n", value);
    return prb_answer_json(job->answer,
                           json_pack("{s:s,s:o,s:o}", "status", raised ? "error" : "ok", "output",
                                     prb_json_text(output.data ? output.data : ""), "traceback",
                                     lines_of(raised)),
                           err);
}

const struct prb_route prb_route_upstream_eval = {
    .methods = PRB_POST,
    .path = "/apis/pythonext/eval",
    .summary = "run Python code in the process",
    .grant = PRB_MAY_EVAL,
    .formats = "json text",
    .parameters = "pid",
    .slow = true,
    .upstream = true,
    .seconds = 30,
    .answer = answer,
};
