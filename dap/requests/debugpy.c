/* Requests of the stock Python debugger that are not in the protocol, but that its VS Code
 * extension and others send. */
#include <string.h>

#include "dap/attach/attach.h"

static bool handle_authorize(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                             struct prb_error *err)
{
    const char *token = NULL;
    if (!prb_dap_get_string(arguments, "debugServerAccessToken", &token, err) ||
        !prb_dap_authorize(session, token, err))
        return false;
    *body_out = json_pack("{s:n}", "clientAccessToken");
    return true;
}

const struct prb_dap_request prb_dap_pydevd_authorize = {
    .command = "pydevdAuthorize",
    .when = PRB_DAP_BEFORE,
    .handle = handle_authorize,
};

/* Internal settings of the other debugger.  They change nothing here, but clients continue only
 * when they are accepted. */
static bool handle_property(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                            struct prb_error *err)
{
    (void)session, (void)arguments, (void)body_out, (void)err;
    return true;
}

const struct prb_dap_request prb_dap_set_debugger_property = {
    .command = "setDebuggerProperty",
    .handle = handle_property,
};

/* {"3.11.7 (main, ...)"} as the three numbers. */
static json_t *version_of(const char *text)
{
    int major = 0, minor = 0, micro = 0;
    char plain[32] = "";
    if (!text || sscanf(text, "%d.%d.%d", &major, &minor, &micro) < 2)
        return json_string("");
    snprintf(plain, sizeof plain, "%d.%d.%d", major, minor, micro);
    return json_string(plain);
}

static bool handle_system(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                          struct prb_error *err)
{
    const char *python = json_string_value(json_object_get(session->facts, "python"));
    (void)arguments, (void)err;
    *body_out = json_pack("{s:{s:o, s:{s:s, s:o, s:s}}, s:{s:s}, s:{s:i, s:i}, s:{s:s}}", "python",
                          "version", version_of(python), "implementation", "name", "cpython",
                          "version", version_of(python), "description", python ? python : "",
                          "platform", "name", "linux", "process", "pid", (int)session->pid,
                          "bitness", 64, "probing", "version", prb_version());
    return *body_out != NULL;
}

const struct prb_dap_request prb_dap_pydevd_system_info = {
    .command = "pydevdSystemInfo",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_system,
};
const struct prb_dap_request prb_dap_debugpy_system_info = {
    .command = "debugpySystemInfo",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_system,
};
