/* source, modules and loadedSources: what code the target has. */
#include "dap/client/sources.h"

static bool handle_source(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                          struct prb_error *err)
{
    json_t *given = json_is_object(prb_dap_get(arguments, "source"))
                        ? json_copy(prb_dap_get(arguments, "source"))
                        : json_object();
    if (prb_dap_get(arguments, "sourceReference") &&
        !json_integer_value(prb_dap_get(given, "sourceReference")))
        json_object_set(given, "sourceReference", prb_dap_get(arguments, "sourceReference"));
    json_t *wanted = prb_dap_source_wanted(session, given, err);
    json_t *answer = wanted ? prb_dap_ask(session, "source", wanted, 0, err) : NULL;
    json_decref(given);
    json_decref(wanted);
    *body_out = answer;
    return answer != NULL;
}

const struct prb_dap_request prb_dap_source = {
    .command = "source",
    .method = "source",
    .when = PRB_DAP_ATTACHED | PRB_DAP_LOOKS,
    .handle = handle_source,
};

static bool handle_modules(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                           struct prb_error *err)
{
    json_int_t start = 0, count = 0;
    json_t *one;
    size_t i;
    if (!prb_dap_get_integer(arguments, "startModule", &start, err) ||
        !prb_dap_get_integer(arguments, "moduleCount", &count, err))
        return false;
    json_t *answer = prb_dap_ask(session, "modules", arguments, 0, err);
    json_array_foreach(json_object_get(answer, "modules"), i, one)
    {
        const char *path = json_string_value(json_object_get(one, "path"));
        PRB_AUTO_FREE char *shown = path ? prb_dap_paths_out(&session->paths, path) : NULL;
        if (shown)
            json_object_set_new(one, "path", json_string(shown));
    }
    *body_out = answer;
    return answer != NULL;
}

const struct prb_dap_request prb_dap_modules = {
    .command = "modules",
    .capabilities = "supportsModulesRequest",
    .method = "modules",
    .when = PRB_DAP_ATTACHED | PRB_DAP_LOOKS,
    .handle = handle_modules,
};

static bool handle_loaded_sources(struct prb_dap_session *session, json_t *arguments,
                                  json_t **body_out, struct prb_error *err)
{
    (void)arguments;
    json_t *answer = prb_dap_ask(session, "loaded_sources", NULL, 0, err), *list = json_array(),
           *one;
    size_t i;
    json_array_foreach(json_object_get(answer, "sources"), i, one)
    {
        const char *path = json_string_value(json_object_get(one, "path"));
        json_int_t reference = json_integer_value(json_object_get(one, "sourceReference"));
        json_t *source = prb_dap_source_json(session, path, reference, true);
        if (source)
            json_array_append_new(list, source);
    }
    *body_out = answer ? json_pack("{s:O}", "sources", list) : NULL;
    json_decref(list);
    json_decref(answer);
    return *body_out != NULL;
}

const struct prb_dap_request prb_dap_loaded_sources = {
    .command = "loadedSources",
    .capabilities = "supportsLoadedSourcesRequest",
    .method = "loaded_sources",
    .when = PRB_DAP_ATTACHED | PRB_DAP_LOOKS,
    .handle = handle_loaded_sources,
};
