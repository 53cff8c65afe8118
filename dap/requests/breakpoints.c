/* Breakpoints on lines, functions and data, and where they are possible. */
#include "dap/client/sources.h"

/* The back end's answer, with sources, lines and columns as the client has them. */
static bool finish(struct prb_dap_session *session, json_t *answer, json_t **body_out)
{
    json_t *one;
    size_t i;
    json_array_foreach(json_object_get(answer, "breakpoints"), i, one)
        prb_dap_lines_map(session, one);
    *body_out = answer;
    return answer != NULL;
}

static json_t *line_of(const struct prb_dap_session *session, const json_t *given)
{
    static const char *const texts[] = {"condition", "hitCondition", "logMessage"};
    json_int_t line = 0, column = 0;
    if (!prb_dap_get_integer(given, "line", &line, NULL) ||
        !prb_dap_get_integer(given, "column", &column, NULL))
        return NULL;
    json_t *one = json_pack("{s:I}", "line", prb_dap_line_in(session, line));
    if (prb_dap_get(given, "column"))
        json_object_set_new(one, "column", json_integer(prb_dap_column_in(session, column)));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (prb_dap_get(given, texts[i]))
            json_object_set(one, texts[i], prb_dap_get(given, texts[i]));
    return one;
}

/* Of `breakpoints`, or of the older `lines`. */
static json_t *lines_of(const struct prb_dap_session *session, const json_t *arguments,
                        struct prb_error *err)
{
    const json_t *given = prb_dap_get(arguments, "breakpoints"),
                 *lines = prb_dap_get(arguments, "lines"), *one;
    json_t *list = json_array();
    size_t i;
    if (given && !json_is_array(given)) {
        json_decref(list);
        return PRB_NULL(prb_fail(err, PRB_USAGE, "breakpoints must be an array"));
    }
    json_array_foreach(given, i, one)
    {
        json_t *line = json_is_object(one) ? line_of(session, one) : NULL;
        if (!line || json_array_append_new(list, line) != 0) {
            json_decref(list);
            return PRB_NULL(prb_fail(err, PRB_USAGE, "breakpoint %zu has no line", i));
        }
    }
    json_array_foreach(lines, i, one)
    {
        if (!given && json_is_integer(one))
            json_array_append_new(
                list,
                json_pack("{s:I}", "line", prb_dap_line_in(session, json_integer_value(one))));
    }
    return list;
}

static void remember(struct prb_dap_session *session, const json_t *wanted)
{
    json_t *one;
    size_t i;
    json_array_foreach(session->breakpoint_sources, i, one)
    {
        if (json_equal(one, wanted))
            return;
    }
    if (!session->breakpoint_sources)
        session->breakpoint_sources = json_array();
    json_array_append_new(session->breakpoint_sources, json_copy((json_t *)wanted));
}

void prb_dap_breakpoints_clear(struct prb_dap_session *session)
{
    static const char *const others[] = {"set_function_breakpoints", "set_data_breakpoints"};
    json_t *none = json_pack("{s:[]}", "breakpoints"), *filters = json_pack("{s:[]}", "filters"),
           *one;
    size_t i;
    json_array_foreach(session->breakpoint_sources, i, one)
    {
        json_object_set_new(one, "breakpoints", json_array());
        json_decref(prb_dap_ask(session, "set_breakpoints", one, 0, NULL));
    }
    for (i = 0; i < sizeof others / sizeof *others; i++)
        json_decref(prb_dap_ask(session, others[i], none, 0, NULL));
    json_decref(prb_dap_ask(session, "set_exception_breakpoints", filters, 0, NULL));
    json_decref(filters);
    json_decref(none);
}

static bool handle_lines(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                         struct prb_error *err)
{
    json_t *wanted = prb_dap_source_wanted(session, prb_dap_get(arguments, "source"), err);
    json_t *lines = wanted ? lines_of(session, arguments, err) : NULL;
    if (lines)
        remember(session, wanted);
    if (lines)
        json_object_set_new(wanted, "breakpoints", lines);
    json_t *answer = lines ? prb_dap_ask(session, "set_breakpoints", wanted, 0, err) : NULL;
    json_decref(wanted);
    return finish(session, answer, body_out);
}

const struct prb_dap_request prb_dap_set_breakpoints = {
    .command = "setBreakpoints",
    .capabilities =
        "supportsConditionalBreakpoints supportsHitConditionalBreakpoints supportsLogPoints",
    .method = "set_breakpoints",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_lines,
};

/* Each item must be an object with a string of this name. */
static bool check_list(const json_t *arguments, const char *key, struct prb_error *err)
{
    const json_t *list = prb_dap_get(arguments, "breakpoints"), *one;
    size_t i;
    if (!json_is_array(list))
        return prb_fail(err, PRB_USAGE, "breakpoints must be an array");
    json_array_foreach(list, i, one)
    {
        if (!json_is_string(json_object_get(one, key)))
            return prb_fail(err, PRB_USAGE, "breakpoint %zu has no %s", i, key);
    }
    return true;
}

static bool handle_functions(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                             struct prb_error *err)
{
    return check_list(arguments, "name", err) &&
           finish(session, prb_dap_ask(session, "set_function_breakpoints", arguments, 0, err),
                  body_out);
}

const struct prb_dap_request prb_dap_set_function_breakpoints = {
    .command = "setFunctionBreakpoints",
    .capabilities = "supportsFunctionBreakpoints",
    .method = "set_function_breakpoints",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_functions,
};

static bool handle_locations(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                             struct prb_error *err)
{
    json_int_t line = prb_dap_line_out(session, 1), end = 0;
    if (!prb_dap_get_integer(arguments, "line", &line, err) ||
        !prb_dap_get_integer(arguments, "endLine", &end, err))
        return false;
    json_t *wanted = prb_dap_source_wanted(session, prb_dap_get(arguments, "source"), err);
    if (!wanted)
        return false;
    json_object_set_new(wanted, "line", json_integer(prb_dap_line_in(session, line)));
    if (prb_dap_get(arguments, "endLine"))
        json_object_set_new(wanted, "endLine", json_integer(prb_dap_line_in(session, end)));
    json_t *answer = prb_dap_ask(session, "breakpoint_locations", wanted, 0, err);
    json_decref(wanted);
    return finish(session, answer, body_out);
}

const struct prb_dap_request prb_dap_breakpoint_locations = {
    .command = "breakpointLocations",
    .capabilities = "supportsBreakpointLocationsRequest",
    .method = "breakpoint_locations",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_locations,
};

static bool handle_data_info(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                             struct prb_error *err)
{
    json_int_t reference = 0, frame = 0;
    const char *name = NULL;
    if (!prb_dap_get_integer(arguments, "variablesReference", &reference, err) ||
        !prb_dap_get_integer(arguments, "frameId", &frame, err) ||
        !prb_dap_get_string(arguments, "name", &name, err))
        return false;
    if (!name)
        return prb_fail(err, PRB_USAGE, "dataBreakpointInfo needs a name");
    pid_t thread = reference ? prb_dap_session_thread(session, PRB_DAP_VALUE, reference)
                             : prb_dap_session_thread(session, PRB_DAP_FRAME, frame);
    *body_out = prb_dap_ask_for(session, "data_breakpoint_info", arguments, thread,
                                session->evaluate_timeout, err);
    return *body_out != NULL;
}

const struct prb_dap_request prb_dap_data_breakpoint_info = {
    .command = "dataBreakpointInfo",
    .capabilities = "supportsDataBreakpoints",
    .method = "data_breakpoint_info",
    .when = PRB_DAP_ATTACHED | PRB_DAP_RUNS_CODE,
    .handle = handle_data_info,
};

static bool handle_data(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                        struct prb_error *err)
{
    return check_list(arguments, "dataId", err) &&
           finish(session, prb_dap_ask(session, "set_data_breakpoints", arguments, 0, err),
                  body_out);
}

const struct prb_dap_request prb_dap_set_data_breakpoints = {
    .command = "setDataBreakpoints",
    .method = "set_data_breakpoints",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_data,
};
