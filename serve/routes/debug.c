/*
 * POST /api/v1/p/{}/debug {"address": "127.0.0.1:0"}: let a debugger (DAP) connect to the process,
 * as `probing debug --listen` does.  Who connects runs code, so it needs eval, and loopback.
 */
#include "format/json.h"
#include "net/address.h"
#include "serve/work/debuggers.h"
#include "serve/work/targets.h"

static bool take_address(const char *text, struct prb_error *err)
{
    struct prb_address address;
    if (!prb_address_parse(text, &address, err))
        return false;
    if (address.any.sa_family == AF_UNIX)
        return prb_fail(err, PRB_USAGE, "%.80s is no address of TCP", text);
    return prb_address_is_loopback(&address.any) ||
           prb_fail(err, PRB_USAGE,
                    "%.80s is not loopback: code must not come over an open network", text);
}

static json_t *launch(const struct prb_debug_server *debugger)
{
    const char *colon = strrchr(debugger->address, ':');
    char host[PRB_ADDRESS_TEXT] = "";
    bool bracket = debugger->address[0] == '[';
    snprintf(host, sizeof host, "%.*s", (int)(colon - debugger->address) - 2 * bracket,
             debugger->address + bracket);
    json_t *entry = json_pack("{s:s,s:s,s:s,s:{s:s,s:i},s:b}", "name", "Attach by Probing", "type",
                              "debugpy", "request", "attach", "connect", "host", host, "port",
                              (int)strtol(colon + 1, NULL, 10), "justMyCode", 0);
    if (*debugger->token)
        json_object_set_new(entry, "token", json_string(debugger->token));
    return entry;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16];
    json_auto_t *body = prb_question_object(job, err);
    if (!body || !prb_serve_target_process(job, target, err))
        return false;
    const char *address = json_string_value(json_object_get(body, "address"));
    if (!address)
        address = "127.0.0.1:0";
    if (!take_address(address, err))
        return false;
    const struct prb_debug_wanted wanted = {
        .program = job->serve->program,
        .target = (pid_t)strtol(target, NULL, 10),
        .address = address,
        .pause = json_is_true(json_object_get(body, "pause")),
        .goes_on = prb_serve_job_goes_on,
        .context = job,
    };
    struct prb_debug_server debugger;
    bool fresh;
    snprintf(job->did, sizeof job->did, "%.150s%s", address, wanted.pause ? ", paused" : "");
    if (!prb_debugger_begin(&wanted, &debugger, &fresh, err))
        return false;
    snprintf(job->did, sizeof job->did, "%s%s", debugger.address, fresh ? "" : ", there already");
    job->answer->status = fresh ? 201 : 200;
    bool ok = prb_answer_json(job->answer,
                              json_pack("{s:s,s:o,s:b,s:o}", "address", debugger.address, "token",
                                        *debugger.token ? json_string(debugger.token) : json_null(),
                                        "paused", debugger.paused, "launch", launch(&debugger)),
                              err);
    explicit_bzero(&debugger, sizeof debugger);
    return ok;
}

const struct prb_route prb_route_debug = {
    .methods = PRB_POST,
    .path = "/api/v1/p/{}/debug",
    .summary = "let a debugger connect (DAP)",
    .grant = PRB_MAY_EVAL,
    .formats = "json",
    .body = "address pause",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
