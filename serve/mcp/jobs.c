/* Tools that are asked of a job of several ranks, "@JOB:RANKS": what the command line says of it. */
#include <string.h>

#include "fleet/fleet.h"
#include "format/json.h"
#include "serve/mcp/mcp.h"
#include "serve/routes/job_roster.h"
#include "serve/text/command.h"

#define ANSWER_MAX (16u << 20)
#define WORDS 8

struct asked {
    const struct prb_mcp *mcp;
    struct prb_buf text, said;
};

static bool take_piece(void *context, bool error, const char *bytes, size_t count)
{
    struct asked *asked = context;
    struct prb_buf *out = error ? &asked->said : &asked->text;
    if (out->len + count > ANSWER_MAX)
        return error;
    prb_buf_add(out, bytes, count);
    return prb_buf_ok(out);
}

static bool goes_on(void *context)
{
    const struct prb_mcp *mcp = ((struct asked *)context)->mcp;
    return !mcp->goes_on || mcp->goes_on(mcp->context);
}

static json_t *failed(const struct asked *asked, int status, struct prb_error *err)
{
    const char *text = asked->said.data ? strstr(asked->said.data, "probing: ") : NULL;
    size_t len = text ? strcspn(text + 9, "\n") : 0;
    if (status < 0)
        return PRB_NULL(prb_fail(err, PRB_TIMEOUT, "the question was ended"));
    prb_fail(err, prb_command_code(status), "%.*s", (int)len, text ? text + 9 : "");
    const char *remedy = text ? text + 9 + len + strspn(text + 9 + len, "\n ") : "";
    return PRB_NULL(prb_error_remedy(err, "%.*s", (int)strcspn(remedy, "\n"), remedy));
}

/* What `probing -t JOB WORDS` prints as JSON; words end with NULL. */
static json_t *ask(const struct prb_mcp_call *call, const char *const *words, struct prb_error *err)
{
    const char *all[WORDS + 3] = {"-t"};
    struct asked asked = {.mcp = call->mcp};
    int status;
    const char *job = json_string_value(json_object_get(call->arguments, "target"));
    PRB_AUTO_FREE char *address = prb_serve_job_address(call->mcp->serve, job, err);
    if (!address)
        return NULL;
    all[1] = address;
    for (size_t i = 0; words[i] && i < WORDS; i++)
        all[i + 2] = words[i];
    const struct prb_command_run run = {call->mcp->program, all, goes_on, take_piece, &asked};
    json_t *told = NULL;
    if (prb_command_run(&run, &status, err)) {
        told = asked.text.len ? json_loadb(asked.text.data, asked.text.len, 0, NULL) : NULL;
        if (!told || (status && status != prb_code_exit(PRB_PARTIAL))) {
            json_decref(told);
            told = failed(&asked, status, err);
        }
    }
    prb_buf_deinit(&asked.text);
    prb_buf_deinit(&asked.said);
    if (told) {
        json_object_set_new(call->result, "target", prb_json_text(address));
        json_object_set(call->result, "coverage", json_object_get(told, "coverage"));
    }
    return told;
}

bool prb_mcp_is_job(const struct prb_mcp_call *call)
{
    const char *target = json_string_value(json_object_get(call->arguments, "target"));
    return target && *target == '@';
}

static json_t *frame_text(const json_t *frame)
{
    char text[400];
    const char *name = json_string_value(json_object_get(frame, "name"));
    const char *file = json_string_value(json_object_get(frame, "file"));
    snprintf(text, sizeof text, "%.200s (%.150s:%d)", name ? name : "?", file ? file : "?",
             (int)json_integer_value(json_object_get(frame, "line")));
    return prb_json_text(text);
}

bool prb_mcp_job_stacks(struct prb_mcp_call *call, size_t limit, struct prb_error *err)
{
    const char *words[] = {"backtrace", "--json", NULL, NULL};
    if (json_is_true(json_object_get(call->arguments, "native")))
        words[2] = "--native";
    json_auto_t *told = ask(call, words, err);
    json_t *groups = json_object_get(call->result, "groups"), *row, *frame;
    size_t i, k;
    if (!told)
        return false;
    json_array_foreach(json_object_get(told, "rows"), i, row)
    {
        json_t *frames = json_array();
        if (i == limit) {
            json_object_set_new(call->result, "truncated", json_true());
            json_decref(frames);
            break;
        }
        json_array_foreach(json_object_get(row, "frames"), k, frame)
            json_array_append_new(frames, frame_text(frame));
        json_object_set_new(row, "frames", frames);
        json_array_append(groups, row);
    }
    json_object_set_new(call->result, "gil", json_null());
    return true;
}

bool prb_mcp_job_query(struct prb_mcp_call *call, const char *sql, size_t limit,
                       struct prb_error *err)
{
    const char *words[] = {"query", "--format=json", "--", sql, NULL};
    json_auto_t *told = ask(call, words, err);
    json_t *columns = json_array(), *rows = json_array(), *row, *value;
    const json_t *given = json_object_get(told, "rows");
    const char *name;
    size_t i;
    json_object_set_new(call->result, "columns", columns);
    json_object_set_new(call->result, "rows", rows);
    json_object_set_new(call->result, "truncated", json_boolean(json_array_size(given) > limit));
    json_object_foreach(json_array_get(given, 0), name, value)
        json_array_append_new(columns, json_string(name));
    json_array_foreach(given, i, row)
    {
        json_t *line = i < limit ? json_array() : NULL;
        json_object_foreach(row, name, value) json_array_append(line, value);
        if (line)
            json_array_append_new(rows, line);
    }
    return told;
}

static void add_finding(json_t *findings, const char *severity, const json_t *part,
                        const char *target)
{
    const char *ranks = json_string_value(json_object_get(part, "ranks"));
    const char *text = json_string_value(json_object_get(part, "text"));
    const char *site = json_string_value(json_object_get(part, "site"));
    size_t job = prb_fleet_job_length(target);
    PRB_AUTO(prb_buf) struct prb_buf next = {0};
    prb_buf_addf(&next, "probing -t %.*s:%s backtrace --native --locals", (int)job, target,
                 ranks ? ranks : "");
    json_array_append_new(
        findings, json_pack("{s:s,s:o,s:o,s:o}", "severity", severity, "finding",
                            json_sprintf("rank %s %s", ranks ? ranks : "?", text ? text : ""),
                            "where", site && *site ? prb_json_text(site) : json_null(), "next",
                            prb_json_text(next.data)));
}

bool prb_mcp_job_diagnose(struct prb_mcp_call *call, struct prb_error *err)
{
    const char *skill = json_string_value(json_object_get(call->arguments, "skill"));
    const json_t *seconds = json_object_get(call->arguments, "seconds");
    char every[40];
    snprintf(every, sizeof every, "--every=%.3f", seconds ? json_number_value(seconds) : 2.0);
    const char *words[] = {"hang", "--format=json", every, NULL};
    if (skill && strcmp(skill, "hang") != 0 && strcmp(skill, "diagnose") != 0)
        return prb_fail(err, PRB_UNSUPPORTED,
                        "of a job only hang is looked for: ask %.60s of one rank", skill);
    json_auto_t *told = ask(call, words, err);
    const char *target = json_string_value(json_object_get(call->result, "target"));
    json_t *findings = json_array(), *part;
    size_t i;
    json_object_set_new(call->result, "findings", findings);
    json_object_set_new(call->result, "tables", json_array());
    if (!told)
        return false;
    bool hung = json_is_true(json_object_get(told, "hung"));
    json_array_foreach(json_object_get(told, "cause"), i, part)
        add_finding(findings, hung ? "high" : "info", part, target);
    json_array_foreach(json_object_get(told, "slow"), i, part)
        add_finding(findings, "medium", part, target);
    json_array_foreach(json_object_get(told, "waiting"), i, part)
        add_finding(findings, "info", part, target);
    json_object_set_new(call->result, "notes", json_pack("[O]", json_object_get(told, "summary")));
    return true;
}

void prb_mcp_add_jobs(struct prb_mcp_call *call)
{
    struct prb_error why; /* without a bus there are this host's */
    json_t *jobs = prb_serve_jobs(call->mcp->serve, NULL, &why), *told = json_array(), *one;
    size_t i;
    json_array_foreach(jobs, i, one) json_array_append_new(
        told,
        json_pack("{s:o,s:O,s:O,s:I}", "id",
                  json_sprintf("@%s", json_string_value(json_object_get(one, "id"))), "world_size",
                  json_object_get(one, "world_size"), "hosts", json_object_get(one, "hosts"),
                  "ranks", (json_int_t)json_array_size(json_object_get(one, "ranks"))));
    json_decref(jobs);
    json_object_set_new(call->result, "jobs", told);
}
