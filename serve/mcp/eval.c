/* The one tool that acts: Python code in the target, as `probing eval` runs it. */
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "format/json.h"
#include "inject/control.h"
#include "inject/inject.h"
#include "serve/mcp/mcp.h"

#define OUTPUT_MAX 65536
#define LONGEST 50.0 /* s */

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)
PRB_DEFINE_AUTO(prb_eval_result, struct prb_eval_result, prb_eval_result_free)

struct evaluation {
    const struct prb_mcp *mcp;
    struct prb_buf output;
    double until;
};

static bool take(void *context, int stream, const char *text, size_t len)
{
    struct evaluation *one = context;
    size_t room = OUTPUT_MAX - one->output.len;
    (void)stream;
    prb_buf_add(&one->output, text, len < room ? len : room);
    return prb_buf_ok(&one->output);
}

static bool is_cancelled(void *context)
{
    const struct evaluation *one = context;
    return prb_clock_s() > one->until ||
           (one->mcp->goes_on && !one->mcp->goes_on(one->mcp->context));
}

static bool eval(struct prb_mcp_call *call, struct prb_error *err)
{
    char spec[PATH_MAX];
    const json_t *code = json_object_get(call->arguments, "code");
    struct evaluation one = {.mcp = call->mcp, .until = prb_clock_s() + LONGEST};
    struct prb_inject_report report;
    PRB_AUTO(prb_eval_result) struct prb_eval_result result = {0};
    if (!prb_mcp_spec(call, spec, err))
        return false;
    if (!json_object_get(call->result, "target"))
        return prb_fail(err, PRB_UNSUPPORTED, "code cannot run in a file");
    pid_t pid = (pid_t)strtol(spec, NULL, 10);
    PRB_AUTO(prb_control) struct prb_control *control = prb_ensure_probe(pid, &report, err);
    const struct prb_eval_options options = {.mode = PRB_EVAL_AUTO,
                                             .code = json_string_value(code),
                                             .code_len = json_string_length(code),
                                             .output = take,
                                             .cancelled = is_cancelled,
                                             .context = &one};
    bool ok = control && prb_control_eval(control, &options, &result, err);
    if (ok) {
        const char *text = result.text ? result.text : "";
        bool value = !result.raised && !result.none;
        json_object_set_new(call->result, "value", value ? prb_json_text(text) : json_null());
        json_object_set_new(call->result, "output",
                            prb_json_text(one.output.data ? one.output.data : ""));
        json_object_set_new(call->result, "raised",
                            result.raised ? prb_json_text(text) : json_null());
    }
    prb_buf_deinit(&one.output);
    return ok;
}

const struct prb_mcp_tool prb_mcp_eval = {
    .name = "eval",
    .title = "Run Python code in the process",
    .description =
        "Runs Python code inside the process, on a thread of its own. It changes a running "
        "job: look with the other tools first. The user is asked each time.",
    .input =
        "{\"type\":\"object\",\"properties\":{\"target\":{\"type\":\"string\",\"maxLength\":200},"
        "\"code\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":20000}},\"required\":["
        "\"target\",\"code\"],\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"value\":{\"type\":[\"string\",\"null\"]},"
              "\"output\":{\"type\":\"string\"},\"raised\":{\"type\":[\"string\",\"null\"]}},"
              "\"required\":[\"value\",\"output\",\"raised\"]}",
    .acts = true,
    .call = eval,
};
