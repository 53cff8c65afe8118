/* Where the time goes, by the command line's `profile`. */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "net/address.h"
#include "serve/doors/life.h"
#include "serve/mcp/mcp.h"

void prb_mcp_link(struct prb_mcp_call *call)
{
    const struct prb_serve *serve = call->mcp->serve;
    const char *target = json_string_value(json_object_get(call->result, "target"));
    char place[PRB_ADDRESS_TEXT];
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    for (const char *at = target; at && *at; at++)
        prb_buf_addf(&name, isalnum((unsigned char)*at) || strchr("-_.~", *at) ? "%c" : "%%%02X",
                     (unsigned char)*at);
    if (!serve || !serve->options->address || !name.len) {
        prb_mcp_put(call, "link", json_null());
        return;
    }
    prb_address_print(&serve->address, place);
    prb_mcp_put(call, "link",
                json_sprintf("%s://%s/#/p/%s/profile", serve->certificate ? "https" : "http", place,
                             name.data));
}

/* Of the command's note: "1191 samples in 3.0 s, 2 dropped". */
static json_int_t dropped(const char *said)
{
    const char *end = said ? strstr(said, " dropped") : NULL, *at = end;
    while (at && at > said && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at && at < end ? strtoll(at, NULL, 10) : 0;
}

static bool profile(struct prb_mcp_call *call, struct prb_error *err)
{
    char spec[PATH_MAX], seconds[16];
    PRB_AUTO(prb_mcp_printed) struct prb_mcp_printed run = {0};
    int status;
    bool job = prb_mcp_is_job(call);
    if (!job && !prb_mcp_spec(call, spec, err))
        return false;
    snprintf(seconds, sizeof seconds, "%d", (int)prb_mcp_number(call, "seconds", 5));
    bool native = json_is_true(json_object_get(call->arguments, "native"));
    bool idle = json_is_true(json_object_get(call->arguments, "idle"));
    const char *mode = json_string_value(json_object_get(call->arguments, "mode"));
    static const char *const modes[] = {"active", "cpu", "wall", "gil"}; /* no probe is loaded */
    bool known = !mode;
    for (size_t i = 0; i < sizeof modes / sizeof *modes && !known; i++)
        known = strcmp(mode, modes[i]) == 0;
    if (!known)
        return prb_fail(err, PRB_USAGE, "`mode` is active, cpu, wall or gil, not \"%.40s\"", mode);
    if (job)
        return prb_mcp_job_profile(call, seconds,
                                   mode   ? mode
                                   : idle ? "wall"
                                          : "active",
                                   native, err);
    const char *words[14] = {"-t", spec, "profile", "-d", seconds, "-f", "collapsed", "-o", "-"};
    size_t count = 9;
    if (native)
        words[count++] = "--native";
    if (idle && !mode)
        words[count++] = "--idle";
    if (mode) {
        words[count++] = "--mode";
        words[count++] = mode;
    }
    bool ok = prb_mcp_command(call->mcp, words, &run, &status, err);
    if (ok && status != 0)
        ok = prb_fail(err, status < 0 ? PRB_TIMEOUT : PRB_IO, "%.300s",
                      run.said.data ? run.said.data : "the profile was ended");
    json_t *hottest = prb_mcp_hottest_begin();
    char *save = NULL;
    json_int_t all = 0;
    for (char *line = ok && run.text.data ? strtok_r(run.text.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        all += prb_mcp_hottest_add(hottest, line);
    prb_mcp_hottest_tell(call, hottest, all);
    prb_mcp_link(call);
    prb_mcp_put(call, "dropped", json_integer(dropped(run.said.data)));
    return ok;
}

const struct prb_mcp_tool prb_mcp_profile = {
    .name = "profile",
    .title = "Where the time goes",
    .description =
        "Samples the process from outside for some seconds: the functions with the most "
        "time of their "
        "own, and the ten heaviest paths. mode says which time: active (the default), cpu, "
        "wall (waiting, too; as idle), gil. Of a job also by rank. link is for the user.",
    .input =
        "{\"type\":\"object\",\"properties\":{" PRB_MCP_TARGET
        ",\"seconds\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":30,\"description\":\"5 if "
        "not given\"},\"native\":{\"type\":\"boolean\"},\"idle\":{\"type\":\"boolean\"},"
        "\"mode\":{\"type\":\"string\",\"enum\":[\"active\",\"cpu\",\"wall\",\"gil\"]}},"
        "\"required\":[\"target\"],\"additionalProperties\":false}",
    .output =
        "{\"type\":\"object\",\"properties\":{\"samples\":{\"type\":\"integer\"},\"hottest\":{"
        "\"type\":\"array\",\"items\":{\"type\":\"object\"}},\"paths\":{\"type\":\"array\","
        "\"items\":{\"type\":\"object\"}},\"dropped\":{\"type\":\"integer\"},\"ranks\":{\"type\":"
        "\"array\"},\"link\":{\"type\":[\"string\",\"null\"]}},\"required\":["
        "\"samples\","
        "\"hottest\",\"paths\",\"dropped\"]}",
    .call = profile,
};
