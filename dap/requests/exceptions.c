/* Exceptions: which of them stop the target, and details of the one that did. */
#include "dap/session/session.h"

static const struct {
    const char *id, *label, *description;
    bool on;
} filters[] = {
    {"raised", "Raised Exceptions",
     "every exception, when it is raised (those between libraries left out)", false},
    {"uncaught", "Uncaught Exceptions", "exceptions that end their thread or the program", true},
    {"userUnhandled", "User Uncaught Exceptions",
     "exceptions that leave the user's code for a library", false},
};

static void add_filters(json_t *capabilities)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:b, s:b, s:s}", "filter", filters[i].id, "label",
                            filters[i].label, "description", filters[i].description, "default",
                            filters[i].on, "supportsCondition", true, "conditionDescription",
                            "an exception type, or an expression with the name exception"));
    json_object_set_new(capabilities, "exceptionBreakpointFilters", list);
}

static bool handle_filters(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                           struct prb_error *err)
{
    const json_t *names = prb_dap_get(arguments, "filters"), *one;
    size_t i;
    if (names && !json_is_array(names))
        return prb_fail(err, PRB_USAGE, "filters must be an array");
    json_array_foreach(names, i, one)
    {
        if (!json_is_string(one))
            return prb_fail(err, PRB_USAGE, "filter %zu must be a string", i);
    }
    const json_t *options = prb_dap_get(arguments, "exceptionOptions");
    if (options && !json_is_array(options))
        return prb_fail(err, PRB_USAGE, "exceptionOptions must be an array");
    *body_out = prb_dap_ask(session, "set_exception_breakpoints", arguments, 0, err);
    return *body_out != NULL;
}

const struct prb_dap_request prb_dap_set_exception_breakpoints = {
    .command = "setExceptionBreakpoints",
    .capabilities = "supportsExceptionFilterOptions supportsExceptionOptions",
    .more = add_filters,
    .method = "set_exception_breakpoints",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_filters,
};

static bool handle_info(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                        struct prb_error *err)
{
    json_int_t thread = 0;
    if (!prb_dap_get_integer(arguments, "threadId", &thread, err))
        return false;
    *body_out = prb_dap_ask(session, "exception_info", arguments, (pid_t)thread, err);
    return *body_out != NULL;
}

const struct prb_dap_request prb_dap_exception_info = {
    .command = "exceptionInfo",
    .capabilities = "supportsExceptionInfoRequest",
    .method = "exception_info",
    .when = PRB_DAP_STOPPED,
    .handle = handle_info,
};
