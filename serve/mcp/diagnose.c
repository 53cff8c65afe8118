/* What the skills find in a process, or in the ranks of a job. */
#include "serve/live/diagnose.h"
#include "serve/mcp/mcp.h"

static bool diagnose(struct prb_mcp_call *call, struct prb_error *err)
{
    char spec[PATH_MAX];
    const char *skill = prb_mcp_text_argument(call, "skill");
    const struct prb_mcp *mcp = call->mcp;
    if (prb_mcp_is_job(call))
        return prb_mcp_job_diagnose(call, err);
    if (!prb_mcp_spec(call, spec, err))
        return false;
    const struct prb_serve_diagnosis wanted = {
        .serve = mcp->serve,
        .spec = spec,
        .name = skill ? skill : "diagnose",
        .seconds = json_number_value(json_object_get(call->arguments, "seconds")),
        .goes_on = mcp->goes_on,
        .context = mcp->context};
    PRB_AUTO_FREE char *text = prb_serve_diagnose(&wanted, err);
    json_t *told = text ? json_loads(text, 0, NULL) : NULL;
    if (!told)
        return text ? prb_fail(err, PRB_INTERNAL, "the diagnosis is not JSON") : false;
    json_object_update(call->result, told);
    json_decref(told);
    return true;
}

const struct prb_mcp_tool prb_mcp_diagnose = {
    .name = "diagnose",
    .title = "What is wrong",
    .description =
        "Looks for what is wrong with a process and says it, the worst first: severity (info, low, "
        "medium, high), finding, where (file:line), next (a command). Without `skill` all run "
        "beside "
        "each other, in about 10 s: health, hang, slow, leak, nan, crash, overhead, comm (ranks). "
        "Of "
        "a job (@JOB) each rank is looked at: `ranks` says whose a finding is.",
    .input =
        "{\"type\":\"object\",\"properties\":{" PRB_MCP_TARGET
        ",\"skill\":{\"type\":\"string\",\"maxLength\":64,\"description\":\"one of them\"},"
        "\"seconds\":{\"type\":\"number\",\"minimum\":0.5,\"maximum\":60,\"description\":\"how "
        "long to look\"}},\"required\":[\"target\"],\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"findings\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"object\",\"required\":[\"severity\",\"finding\",\"where\",\"next\"]}},"
              "\"tables\":{\"type\":\"array\"},\"notes\":{\"type\":\"array\"},\"truncated\":{"
              "\"type\":\"boolean\"}},\"required\":[\"findings\",\"tables\"]}",
    .call = diagnose,
};
