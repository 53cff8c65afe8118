/* Capabilities, as the descriptors of the requests state them: see capabilities.h. */
#include "dap/requests/capabilities.h"

#include <string.h>

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

/* Before attach it is not known what the target allows.  All that may come is announced; what turns
 * out to be missing is taken back by a `capabilities` event (attach/attach.c). */
json_t *prb_dap_capabilities_announced(const struct prb_dap_session *session)
{
    json_t *capabilities = json_object();
    for (size_t i = 0; session->requests[i]; i++) {
        const struct prb_dap_request *request = session->requests[i];
        take_names(capabilities, request->capabilities, !request->setting);
        if (request->more)
            request->more(capabilities);
    }
    if (session->host->keeps_target)
        json_object_set_new(capabilities, "supportSuspendDebuggee", json_true());
    return capabilities;
}

json_t *prb_dap_capabilities_changed(struct prb_dap_session *session)
{
    json_t *changed = json_object();
    for (size_t i = 0; session->requests[i]; i++) {
        const struct prb_dap_request *request = session->requests[i];
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
    if (session->host->keeps_target)
        json_object_set_new(changed, "supportSuspendDebuggee", json_false());
    return changed;
}
