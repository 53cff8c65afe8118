/* threads: also while the target runs. */
#include <string.h>

#include "dap/session/session.h"

static json_t *name_of(const json_t *thread)
{
    const char *name = json_string_value(json_object_get(thread, "name"));
    const char *native = json_string_value(json_object_get(thread, "native"));
    char text[300];
    if (!name)
        name = "thread";
    if (!native)
        return json_string(name);
    snprintf(text, sizeof text, "%.150s [in native: %.100s]", name, native);
    json_t *both = json_string(text);
    return both ? both : json_string(name); /* cut within a character */
}

static bool handle_threads(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                           struct prb_error *err)
{
    (void)arguments;
    json_t *answer = prb_dap_ask(session, "threads", NULL, 0, err), *list = json_array(), *one;
    size_t i;
    json_array_foreach(json_object_get(answer, "threads"), i, one)
    {
        json_array_append_new(
            list, json_pack("{s:O, s:o}", "id", json_object_get(one, "id"), "name", name_of(one)));
    }
    *body_out = answer ? json_pack("{s:o}", "threads", list) : (json_decref(list), NULL);
    json_decref(answer);
    return *body_out != NULL;
}

const struct prb_dap_request prb_dap_threads = {
    .command = "threads",
    .method = "threads",
    .when = PRB_DAP_ATTACHED | PRB_DAP_LOOKS,
    .handle = handle_threads,
};
