/* initialize: who the client is, and what this session can do. */
#include <string.h>

#include "dap/requests/capabilities.h"
#include "dap/session/session.h"

static bool take_client(struct prb_dap_client *client, const json_t *arguments,
                        struct prb_error *err)
{
    bool lines_from_1 = true, columns_from_1 = true;
    const char *format = "path", *name = "", *adapter = "", *id = "";
    if (!prb_dap_get_string(arguments, "adapterID", &adapter, err) ||
        !prb_dap_get_flag(arguments, "linesStartAt1", &lines_from_1, err) ||
        !prb_dap_get_flag(arguments, "columnsStartAt1", &columns_from_1, err) ||
        !prb_dap_get_string(arguments, "pathFormat", &format, err) ||
        !prb_dap_get_string(arguments, "clientID", &id, err) ||
        !prb_dap_get_string(arguments, "clientName", &name, err) ||
        !prb_dap_get_flag(arguments, "supportsProgressReporting", &client->progress, err) ||
        !prb_dap_get_flag(arguments, "supportsInvalidatedEvent", &client->invalidated, err) ||
        !prb_dap_get_flag(arguments, "supportsMemoryEvent", &client->memory, err) ||
        !prb_dap_get_flag(arguments, "supportsStartDebuggingRequest", &client->start_debugging,
                          err) ||
        !prb_dap_get_flag(arguments, "supportsRunInTerminalRequest", &client->run_in_terminal,
                          err) ||
        !prb_dap_get_flag(arguments, "supportsArgsCanBeInterpretedByShell", &client->shell_args,
                          err) ||
        !prb_dap_get_flag(arguments, "supportsVariableType", &client->variable_type, err) ||
        !prb_dap_get_flag(arguments, "supportsVariablePaging", &client->paging, err))
        return false;
    client->lines_from_0 = !lines_from_1;
    client->columns_from_0 = !columns_from_1;
    client->uris = strcmp(format, "uri") == 0;
    client->folds = strcmp(id, "vscode") == 0; /* and editors made from it */
    snprintf(client->name, sizeof client->name, "%s", name);
    return true;
}

static bool handle_initialize(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                              struct prb_error *err)
{
    if (session->state != PRB_DAP_NEW)
        return prb_fail(err, PRB_USAGE, "initialize may be sent only once");
    if (!take_client(&session->client, arguments, err))
        return false;
    session->state = PRB_DAP_INITIALIZED;
    session->paths.uris = session->client.uris;
    if (session->host->relays)
        session->initialize = json_incref(arguments);
    *body_out = prb_dap_capabilities_announced(session);
    return true;
}

const struct prb_dap_request prb_dap_initialize = {
    .command = "initialize",
    .capabilities = "supportsCancelRequest", /* the reader answers it: session/reader.c */
    .when = PRB_DAP_BEFORE,
    .handle = handle_initialize,
};
