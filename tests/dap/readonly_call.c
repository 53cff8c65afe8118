/*
 * Calls the look back end without a server.  SPEC: a target; lines of standard input
 * {"method", "arguments"}; a line of standard output for each: {"result"} or {"error"}, and
 * {"events"} when there were any.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dap/backend/backend.h"

static void keep_event(void *context, const char *event, json_t *body)
{
    json_array_append_new(context, json_pack("{s:s, s:O}", "event", event, "body", body));
}

static void answer(struct prb_dap_backend *backend, const char *line, json_t *events)
{
    struct prb_error err = {0};
    json_t *request = json_loads(line, 0, NULL), *out = json_object();
    const char *method = json_string_value(json_object_get(request, "method"));
    struct prb_dap_call call = {.method = method ? method : "",
                                .arguments = json_object_get(request, "arguments")};
    json_t *result = backend->ops->call(backend, &call, &err);
    if (result)
        json_object_set_new(out, "result", result);
    else
        json_object_set_new(
            out, "error",
            json_pack("{s:s, s:s}", "code", prb_code_name(err.code), "text", err.text));
    json_object_set_new(out, "has", json_boolean(backend->ops->has(backend, call.method)));
    json_object_set_new(out, "events", json_copy(events));
    json_array_clear(events);
    json_dumpf(out, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(out);
    json_decref(request);
}

int main(int argc, char **argv)
{
    struct prb_error err = {0};
    struct prb_target *target = argc == 2 ? prb_target_open(argv[1], NULL, &err) : NULL;
    struct prb_dap_backend *backend = target ? prb_dap_readonly_open(target, &err) : NULL;
    PRB_AUTO_FREE char *line = NULL;
    size_t cap = 0;
    if (!backend) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    json_t *events = json_array();
    backend->event = keep_event;
    backend->context = events;
    while (getline(&line, &cap, stdin) > 0)
        answer(backend, line, events);
    backend->ops->close(backend);
    json_decref(events);
    return 0;
}
