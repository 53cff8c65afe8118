/* variables, setVariable, setExpression, evaluate and completions.  They run code of the target, on
 * the thread that the frame or value belongs to, for a bounded time. */
#include "dap/requests/variables.h"

#include <string.h>

#define HOVER_S 5.0 /* nobody waits longer for a hover */

static void remember(struct prb_dap_session *session, json_t *value, pid_t thread)
{
    prb_dap_session_set_thread(session, PRB_DAP_VALUE,
                               json_integer_value(json_object_get(value, "variablesReference")),
                               thread);
    if (!session->client.variable_type)
        json_object_del(value, "type");
}

void prb_dap_invalidate(struct prb_dap_session *session)
{
    if (session->client.invalidated)
        prb_dap_event(session, "invalidated", json_pack("{s:[s]}", "areas", "variables"));
}

/* The rows of a value.  When they take too long, or a repr does not end, they are asked for again:
 * then come those that are ready, and the others without their repr. */
static json_t *ask_for_rows(struct prb_dap_session *session, json_t *arguments, pid_t thread,
                            struct prb_error *err)
{
    double timeout = session->evaluate_timeout;
    json_t *answer = prb_dap_ask_for(session, "variables", arguments, thread, timeout, err);
    if (answer || err->code != PRB_TIMEOUT || prb_dap_is_cancelled(session))
        return answer;
    return prb_dap_ask_for(session, "variables", arguments, thread, timeout, err);
}

static bool handle_variables(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                             struct prb_error *err)
{
    json_int_t reference = 0, start = 0, count = 0;
    json_t *one;
    size_t i;
    if (!prb_dap_get_integer(arguments, "variablesReference", &reference, err) ||
        !prb_dap_get_integer(arguments, "start", &start, err) ||
        !prb_dap_get_integer(arguments, "count", &count, err))
        return false;
    if (start < 0 || count < 0)
        return prb_fail(err, PRB_USAGE, "start and count must be at least 0");
    pid_t thread = prb_dap_session_thread(session, PRB_DAP_VALUE, reference);
    json_t *answer = ask_for_rows(session, arguments, thread, err);
    json_array_foreach(json_object_get(answer, "variables"), i, one)
    {
        remember(session, one, thread);
    }
    *body_out = answer;
    return answer != NULL;
}

const struct prb_dap_request prb_dap_variables = {
    .command = "variables",
    .method = "variables",
    .when = PRB_DAP_ATTACHED | PRB_DAP_RUNS_CODE,
    .handle = handle_variables,
};

/* Call a method that returns a value, and store which thread the value belongs to. */
static bool make_value(struct prb_dap_session *session, const char *method, json_t *arguments,
                       pid_t thread, double timeout, json_t **body_out, struct prb_error *err)
{
    json_t *answer = prb_dap_ask_for(session, method, arguments, thread, timeout, err);
    if (answer)
        remember(session, answer, thread);
    *body_out = answer;
    return answer != NULL;
}

static bool handle_set_variable(struct prb_dap_session *session, json_t *arguments,
                                json_t **body_out, struct prb_error *err)
{
    json_int_t reference = 0;
    const char *name = NULL, *value = NULL;
    if (!prb_dap_get_integer(arguments, "variablesReference", &reference, err) ||
        !prb_dap_get_string(arguments, "name", &name, err) ||
        !prb_dap_get_string(arguments, "value", &value, err))
        return false;
    if (!name || !value)
        return prb_fail(err, PRB_USAGE, "setVariable needs a name and a value");
    pid_t thread = prb_dap_session_thread(session, PRB_DAP_VALUE, reference);
    if (!make_value(session, "set_variable", arguments, thread, session->evaluate_timeout, body_out,
                    err))
        return false;
    prb_dap_invalidate(session);
    return true;
}

const struct prb_dap_request prb_dap_set_variable = {
    .command = "setVariable",
    .capabilities = "supportsSetVariable",
    .method = "set_variable",
    .when = PRB_DAP_STOPPED | PRB_DAP_RUNS_CODE,
    .handle = handle_set_variable,
};

static bool take_expression(const json_t *arguments, json_int_t *frame_out, struct prb_error *err)
{
    const char *expression = NULL;
    if (!prb_dap_get_string(arguments, "expression", &expression, err) ||
        !prb_dap_get_integer(arguments, "frameId", frame_out, err))
        return false;
    return expression || prb_fail(err, PRB_USAGE, "expression is missing");
}

static bool handle_set_expression(struct prb_dap_session *session, json_t *arguments,
                                  json_t **body_out, struct prb_error *err)
{
    json_int_t frame = 0;
    const char *value = NULL;
    if (!take_expression(arguments, &frame, err) ||
        !prb_dap_get_string(arguments, "value", &value, err))
        return false;
    if (!value)
        return prb_fail(err, PRB_USAGE, "setExpression needs a value");
    pid_t thread = prb_dap_session_thread(session, PRB_DAP_FRAME, frame);
    if (!make_value(session, "set_expression", arguments, thread, session->evaluate_timeout,
                    body_out, err))
        return false;
    prb_dap_invalidate(session);
    return true;
}

const struct prb_dap_request prb_dap_set_expression = {
    .command = "setExpression",
    .capabilities = "supportsSetExpression",
    .method = "set_expression",
    .when = PRB_DAP_ATTACHED | PRB_DAP_RUNS_CODE,
    .handle = handle_set_expression,
};

static bool handle_evaluate(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                            struct prb_error *err)
{
    json_int_t frame = 0;
    const char *context = "";
    if (!take_expression(arguments, &frame, err) ||
        !prb_dap_get_string(arguments, "context", &context, err))
        return false;
    bool hover = strcmp(context, "hover") == 0;
    double timeout = session->evaluate_timeout;
    if (hover && (timeout <= 0 || timeout > HOVER_S))
        timeout = HOVER_S;
    pid_t thread = prb_dap_session_thread(session, PRB_DAP_FRAME, frame);
    if (!make_value(session, "evaluate", arguments, thread, timeout, body_out, err))
        return false;
    if (strcmp(context, "repl") == 0)
        prb_dap_invalidate(session);
    return true;
}

const struct prb_dap_request prb_dap_evaluate = {
    .command = "evaluate",
    .capabilities = "supportsEvaluateForHovers supportsClipboardContext",
    .method = "evaluate",
    .when = PRB_DAP_ATTACHED | PRB_DAP_RUNS_CODE,
    .handle = handle_evaluate,
};

static bool handle_completions(struct prb_dap_session *session, json_t *arguments,
                               json_t **body_out, struct prb_error *err)
{
    json_int_t frame = 0, line = prb_dap_line_out(session, 1),
               column = prb_dap_column_out(session, 1);
    const char *text = NULL;
    json_t *one;
    size_t i;
    if (!prb_dap_get_string(arguments, "text", &text, err) ||
        !prb_dap_get_integer(arguments, "frameId", &frame, err) ||
        !prb_dap_get_integer(arguments, "line", &line, err) ||
        !prb_dap_get_integer(arguments, "column", &column, err))
        return false;
    json_t *wanted =
        json_pack("{s:s, s:I, s:I}", "text", text ? text : "", "line",
                  prb_dap_line_in(session, line), "column", prb_dap_column_in(session, column));
    if (prb_dap_get(arguments, "frameId"))
        json_object_set_new(wanted, "frameId", json_integer(frame));
    pid_t thread = prb_dap_session_thread(session, PRB_DAP_FRAME, frame);
    json_t *answer = prb_dap_ask_for(session, "completions", wanted, thread, HOVER_S, err);
    json_decref(wanted);
    json_array_foreach(json_object_get(answer, "targets"), i, one)
    {
        const json_t *start = json_object_get(one, "start");
        if (json_is_integer(start))
            json_object_set_new(
                one, "start", json_integer(prb_dap_column_out(session, json_integer_value(start))));
    }
    *body_out = answer;
    return answer != NULL;
}

static void add_completions(json_t *capabilities)
{
    json_object_set_new(capabilities, "completionTriggerCharacters", json_pack("[s]", "."));
}

const struct prb_dap_request prb_dap_completions = {
    .command = "completions",
    .capabilities = "supportsCompletionsRequest",
    .more = add_completions,
    .method = "completions",
    .when = PRB_DAP_ATTACHED | PRB_DAP_RUNS_CODE,
    .handle = handle_completions,
};
