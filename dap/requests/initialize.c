/* initialize: who the client is, and what this session can do, as the requests' own descriptors say
 * it. */
#include <string.h>

#include "dap/attach/attach.h"
#include "dap/session/session.h"

static void take_names(json_t *capabilities, const char *names, bool value)
{
    char name[80];
    for (; names && *names; names += strspn(names, " ")) {
        size_t len = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, names);
        json_object_set_new(capabilities, name, json_boolean(value));
        names += len;
    }
}

/* Before attach it is not known what the target allows: what may come is announced, what turns out
 * not to be there is taken back by a `capabilities` event (attach/attach.c). */
json_t *prb_dap_capabilities_told(const struct prb_dap_session *session)
{
    json_t *capabilities = json_object();
    const struct prb_dap_request *request;
    for (size_t i = 0; (request = prb_dap_request_at(i)); i++) {
        take_names(capabilities, request->capabilities, !request->setting);
        if (request->more)
            request->more(capabilities);
    }
    if (session->host->keeps)
        json_object_set_new(capabilities, "supportSuspendDebuggee", json_true());
    return capabilities;
}

json_t *prb_dap_capabilities_changed(struct prb_dap_session *session)
{
    json_t *changed = json_object();
    const struct prb_dap_request *request;
    for (size_t i = 0; (request = prb_dap_request_at(i)); i++) {
        bool there =
            !request->method || session->backend->ops->has(session->backend, request->method);
        bool set =
            !request->setting || json_is_true(json_object_get(session->settings, request->setting));
        if (!there || request->setting)
            take_names(changed, request->capabilities, there && set);
        if (!there && request->more && strcmp(request->command, "setExceptionBreakpoints") == 0)
            json_object_set_new(changed, "exceptionBreakpointFilters", json_array());
    }
    if (prb_dap_session_is_live(session))
        return changed;
    json_object_set_new(changed, "supportTerminateDebuggee", json_false());
    if (session->host->keeps)
        json_object_set_new(changed, "supportSuspendDebuggee", json_false());
    return changed;
}

static bool take_client(struct prb_dap_client *client, const json_t *arguments,
                        struct prb_error *err)
{
    bool lines_from_1 = true, columns_from_1 = true;
    const char *format = "path", *name = "", *adapter = "", *id = "";
    if (!prb_dap_get_text(arguments, "adapterID", &adapter, err) ||
        !prb_dap_get_flag(arguments, "linesStartAt1", &lines_from_1, err) ||
        !prb_dap_get_flag(arguments, "columnsStartAt1", &columns_from_1, err) ||
        !prb_dap_get_text(arguments, "pathFormat", &format, err) ||
        !prb_dap_get_text(arguments, "clientID", &id, err) ||
        !prb_dap_get_text(arguments, "clientName", &name, err) ||
        !prb_dap_get_flag(arguments, "supportsProgressReporting", &client->progress, err) ||
        !prb_dap_get_flag(arguments, "supportsInvalidatedEvent", &client->invalidated, err) ||
        !prb_dap_get_flag(arguments, "supportsMemoryEvent", &client->memory, err) ||
        !prb_dap_get_flag(arguments, "supportsStartDebuggingRequest", &client->start_debugging,
                          err) ||
        !prb_dap_get_flag(arguments, "supportsRunInTerminalRequest", &client->run_in_terminal,
                          err) ||
        !prb_dap_get_flag(arguments, "supportsVariableType", &client->variable_type, err) ||
        !prb_dap_get_flag(arguments, "supportsVariablePaging", &client->paging, err))
        return false;
    client->lines_from_0 = !lines_from_1;
    client->columns_from_0 = !columns_from_1;
    client->uris = strcmp(format, "uri") == 0;
    client->folds = strcmp(id, "vscode") == 0; /* and what is made of it */
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
    if (session->host->follows)
        session->hello = json_incref(arguments);
    *body_out = prb_dap_capabilities_told(session);
    return true;
}

const struct prb_dap_request prb_dap_initialize = {
    .command = "initialize",
    .capabilities = "supportsCancelRequest", /* the reader answers it: session/reader.c */
    .when = PRB_DAP_BEFORE,
    .handle = handle_initialize,
};
