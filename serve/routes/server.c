/* GET /api/v1: the server, what who asks may do, the limits. */
#include "serve/doors/access.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    unsigned grants = job->question->grants;
    json_t *may = json_array();
    static const char *const names[] = {"look", "control", "eval"};
    for (unsigned i = 0; i < 3; i++)
        if (grants & 1u << i)
            json_array_append_new(may, json_string(names[i]));
    json_t *limits = json_pack(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f}", "body_bytes", (int)PRB_SERVE_BODY_MAX,
        "answer_bytes", (int)PRB_SERVE_ANSWER_MAX, "connections", PRB_SERVE_KNOWN_MAX, "strangers",
        PRB_SERVE_STRANGERS_MAX, "text_sessions", PRB_SERVE_TEXTS_MAX, "waiting",
        PRB_SERVE_WAITING_MAX, "waiting_of_a_target", PRB_SERVE_WAITING_TARGET_MAX, "rows",
        PRB_SERVE_ROWS_MAX, "profile_seconds", PRB_SERVE_PROFILE_SECONDS_MAX);
    json_t *routes = json_array();
    for (size_t i = 0; prb_routes[i]; i++)
        json_array_append_new(routes, json_string(prb_routes[i]->path));
    json_array_append_new(routes, json_string(PRB_LIVE_PATH));
    return prb_answer_json(
        job->answer,
        json_pack("{s:s,s:i,s:o,s:i,s:o,s:o,s:s?}", "version", prb_version(), "pid", (int)getpid(),
                  "grants", may, "second_tokens", (int)prb_tokens_count(job->serve->tokens),
                  "limits", limits, "routes", routes, "warning",
                  prb_access_is_open(job->serve)
                      ? "nothing encrypts what goes between this server and other "
                        "machines: `probing serve --cert FILE --key FILE` does"
                      : NULL),
        err);
}

const struct prb_route prb_route_server = {
    .methods = PRB_GET,
    .path = "/api/v1",
    .summary = "the server, grants and limits",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .seconds = 10,
    .answer = answer,
};
