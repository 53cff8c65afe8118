/* Tools that are asked of a job of several ranks, "@JOB:RANKS": what the command line says of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet.h"
#include "format/json.h"
#include "serve/mcp/mcp.h"
#include "serve/routes/job_roster.h"
#include "serve/text/command.h"

#define WORDS 12

static json_t *failed(const struct prb_mcp_printed *asked, int status, struct prb_error *err)
{
    const char *text = asked->said.data ? strstr(asked->said.data, "probing: ") : NULL;
    size_t len = text ? strcspn(text + 9, "\n") : 0;
    if (status < 0)
        return PRB_NULL(prb_fail(err, PRB_TIMEOUT, "the question was ended"));
    prb_fail(err, prb_command_code(status), "%.*s", (int)len, text ? text + 9 : "");
    const char *remedy = text ? text + 9 + len + strspn(text + 9 + len, "\n ") : "";
    return PRB_NULL(prb_error_remedy(err, "%.*s", (int)strcspn(remedy, "\n"), remedy));
}

/* "probing: note: TEXT" of each line of standard error, as one text; null: there is none. */
static json_t *notes_of(const char *said)
{
    static const char mark[] = "probing: note: ";
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t len; said && *said; said += len + (said[len] == '\n')) {
        len = strcspn(said, "\n");
        if (strncmp(said, mark, sizeof mark - 1) == 0)
            prb_buf_addf(&text, "%s%.*s", text.len ? "; " : "", (int)(len - (sizeof mark - 1)),
                         said + sizeof mark - 1);
    }
    return prb_json_text(text.data);
}

/* What `probing -t JOB WORDS` prints as JSON; words end with NULL. */
static json_t *ask(const struct prb_mcp_call *call, const char *const *words, struct prb_error *err)
{
    const char *all[WORDS + 3] = {"-t"};
    PRB_AUTO(prb_mcp_printed) struct prb_mcp_printed asked = {0};
    int status;
    const char *job = json_string_value(json_object_get(call->arguments, "target"));
    PRB_AUTO_FREE char *address = prb_serve_job_address(call->mcp->serve, job, err);
    if (!address)
        return NULL;
    all[1] = address;
    for (size_t i = 0; words[i] && i < WORDS; i++)
        all[i + 2] = words[i];
    json_t *told = NULL;
    if (prb_mcp_command(call->mcp, all, &asked, &status, err)) {
        told = asked.text.len ? json_loadb(asked.text.data, asked.text.len, 0, NULL) : NULL;
        bool found = status == 1 && json_object_get(told, "findings"); /* what is bad, not amiss */
        if (!told || (status && !found && status != prb_code_exit(PRB_PARTIAL))) {
            json_decref(told);
            told = failed(&asked, status, err);
        }
    }
    if (told) {
        json_object_set_new(call->result, "target", prb_json_text(address));
        json_object_set(call->result, "coverage", json_object_get(told, "coverage"));
        json_object_set_new(call->result, "warning", notes_of(asked.said.data));
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

/* ---- profile ---- */

/* The stacks by node, "outer;inner COUNT" each, to the hottest; returns all samples. */
static json_int_t add_stacks(const json_t *told, json_t *hottest)
{
    const json_t *nodes = json_object_get(told, "nodes"), *frames = json_object_get(told, "frames");
    const json_t *weight;
    size_t count = json_array_size(nodes), i;
    PRB_AUTO_FREE json_int_t *samples = calloc(count + 1, sizeof *samples);
    PRB_AUTO_FREE size_t *path = calloc(count + 1, sizeof *path);
    json_int_t all = 0;
    json_array_foreach(json_object_get(told, "weights"), i, weight)
    {
        size_t node = (size_t)json_integer_value(json_array_get(weight, 1));
        if (samples && node < count)
            samples[node] += json_integer_value(json_array_get(weight, 2));
    }
    for (i = 1; samples && path && i < count; i++) {
        PRB_AUTO(prb_buf) struct prb_buf line = {0};
        size_t depth = 0;
        if (!samples[i])
            continue;
        for (size_t at = i; at && at < count && depth < count;) {
            const json_t *node = json_array_get(nodes, at);
            path[depth++] = (size_t)json_integer_value(json_array_get(node, 1));
            at = (size_t)json_integer_value(json_array_get(node, 0));
        }
        while (depth-- > 0) {
            json_t *name = frame_text(json_array_get(frames, path[depth]));
            for (const char *c = json_string_value(name); c && *c; c++)
                prb_buf_addc(&line, *c == ';' || *c == '\n' ? ':' : *c);
            prb_buf_addc(&line, depth ? ';' : ' ');
            json_decref(name);
        }
        prb_buf_addf(&line, "%lld", (long long)samples[i]);
        all += line.data && prb_buf_ok(&line) ? prb_mcp_hottest_add(hottest, line.data) : 0;
    }
    return all;
}

/* Of each rank the function with the most time of its own. */
static json_t *ranks_json(const json_t *told)
{
    const json_t *nodes = json_object_get(told, "nodes"), *frames = json_object_get(told, "frames"),
                 *threads = json_object_get(told, "threads"), *weight;
    json_t *ranks = json_object(), *rows = json_array(), *functions, *value;
    const char *rank, *name;
    size_t i;
    json_array_foreach(json_object_get(told, "weights"), i, weight)
    {
        char key[16];
        const json_t *thread =
            json_array_get(threads, (size_t)json_integer_value(json_array_get(weight, 0)));
        const json_t *node =
            json_array_get(nodes, (size_t)json_integer_value(json_array_get(weight, 1)));
        json_int_t frame = json_integer_value(json_array_get(node, 1));
        const char *function = json_string_value(
            json_object_get(json_array_get(frames, frame < 0 ? SIZE_MAX : (size_t)frame), "name"));
        snprintf(key, sizeof key, "%d", (int)json_integer_value(json_object_get(thread, "rank")));
        if (!json_object_get(ranks, key))
            json_object_set_new(ranks, key, json_object());
        functions = json_object_get(ranks, key);
        function = function ? function : "?";
        json_object_set_new(functions, function,
                            json_integer(json_integer_value(json_object_get(functions, function)) +
                                         json_integer_value(json_array_get(weight, 2))));
    }
    json_object_foreach(ranks, rank, functions)
    {
        json_int_t all = 0, most = -1;
        const char *hottest = "";
        json_object_foreach(functions, name, value)
        {
            json_int_t one = json_integer_value(value);
            all += one;
            if (one > most) {
                most = one;
                hottest = name;
            }
        }
        json_array_append_new(rows, json_pack("{s:i,s:I,s:o,s:f}", "rank", atoi(rank), "samples",
                                              all, "function", prb_json_text(hottest), "share",
                                              all ? (double)most / (double)all : 0.0));
    }
    json_decref(ranks);
    return rows;
}

bool prb_mcp_job_profile(struct prb_mcp_call *call, const char *seconds, const char *mode,
                         bool native, struct prb_error *err)
{
    const char *words[] = {"profile", "-d", seconds, "-f", "json", "--mode", mode, NULL, NULL};
    if (native)
        words[7] = "--native";
    json_auto_t *told = ask(call, words, err);
    if (!told)
        return false;
    json_t *hottest = prb_mcp_hottest_begin();
    json_int_t all = add_stacks(told, hottest);
    prb_mcp_hottest_tell(call, hottest, all);
    json_object_set_new(call->result, "ranks", ranks_json(told));
    json_object_set(call->result, "dropped", json_object_get(told, "dropped"));
    prb_mcp_link(call);
    return true;
}

/* ---- diagnose ---- */

#define STEPS                                                                                      \
    "SELECT rank, host, count(*) AS steps, max(coalesce(global_step, local_step)) AS step, "       \
    "avg(step_duration_sec) AS mean, max(step_duration_sec) AS longest, avg(data) AS data, "       \
    "avg(forward) AS forward, avg(backward) AS backward, avg(optimizer) AS optimizer "             \
    "FROM python.torch_step_timing WHERE timestamp > now() - 60 GROUP BY rank, host ORDER BY rank"
#define WAITS                                                                                      \
    "SELECT src_rank AS rank, count(*) AS times, avg(wait_ms) AS mean_ms, max(wait_ms) AS "        \
    "most_ms "                                                                                     \
    "FROM comm_metrics WHERE timestamp > now() - 60 GROUP BY src_rank ORDER BY sum(wait_ms) DESC"
#define WAITS_MS 5.0 /* that the others wait for one, to be told */

/* Steps of all ranks beside each other, and who makes the others wait. */
static bool diagnose_slow(struct prb_mcp_call *call, struct prb_error *err)
{
    static const struct {
        const char *title, *sql;
    } tables[] = {{"Steps of the last minute", STEPS}, {"Ranks that came last", WAITS}};
    json_t *findings = json_object_get(call->result, "findings"),
           *told_tables = json_object_get(call->result, "tables"), *row;
    size_t i;
    for (size_t k = 0; k < 2; k++) {
        const char *words[] = {"query", "--format=json", "--", tables[k].sql, NULL};
        json_auto_t *told = ask(call, words, err);
        if (!told)
            return false;
        json_array_append_new(told_tables, json_pack("{s:s,s:O}", "title", tables[k].title, "rows",
                                                     json_object_get(told, "rows")));
    }
    const char *target = json_string_value(json_object_get(call->result, "target"));
    size_t job = prb_fleet_job_length(target);
    json_array_foreach(json_object_get(json_array_get(told_tables, 1), "rows"), i, row)
    {
        double mean = json_number_value(json_object_get(row, "mean_ms"));
        int rank = (int)json_integer_value(json_object_get(row, "rank"));
        if (mean < WAITS_MS)
            continue;
        json_array_append_new(
            findings,
            json_pack("{s:s,s:o,s:n,s:o}", "severity", i ? "low" : "medium", "finding",
                      json_sprintf("rank %d came last to %d collectives; the others waited %.1f ms",
                                   rank, (int)json_integer_value(json_object_get(row, "times")),
                                   mean),
                      "where", "next",
                      json_sprintf("probing -t %.*s:%d profile", (int)job, target, rank)));
    }
    if (json_array_size(findings) == 0)
        json_array_append_new(findings,
                              json_pack("{s:s,s:s,s:n,s:o}", "severity", "info", "finding",
                                        "no rank is seen to make the others wait", "where", "next",
                                        json_sprintf("probing -t %.*s profile", (int)job, target)));
    return true;
}

/* The worst first, else as they are. */
static void sort_findings(json_t *findings)
{
    json_t *sorted = json_array(), *one;
    size_t i;
    for (int severity = PRB_SEVERITY_HIGH; severity >= PRB_SEVERITY_INFO; severity--)
        json_array_foreach(findings, i, one)
        {
            const char *name = json_string_value(json_object_get(one, "severity"));
            if (name && strcmp(name, prb_severity_name((enum prb_severity)severity)) == 0)
                json_array_append(sorted, one);
        }
    json_array_clear(findings);
    json_array_extend(findings, sorted);
    json_decref(sorted);
}

bool prb_mcp_job_diagnose(struct prb_mcp_call *call, struct prb_error *err)
{
    const json_t *seconds = json_object_get(call->arguments, "seconds");
    const char *skill = json_string_value(json_object_get(call->arguments, "skill"));
    const char *words[8] = {"skill", "--json"};
    json_t *findings = json_array();
    size_t count = 2;
    char text[40];
    snprintf(text, sizeof text, "--seconds=%.3f", seconds ? json_number_value(seconds) : 0);
    if (seconds)
        words[count++] = text;
    words[count++] = "--";
    words[count++] = "run";
    if (skill)
        words[count++] = skill;
    json_object_set_new(call->result, "findings", findings);
    json_object_set_new(call->result, "tables", json_array());
    if (skill && strcmp(skill, "slow") == 0 && !diagnose_slow(call, err))
        return false;
    json_auto_t *told = ask(call, words, err);
    if (!told)
        return false;
    json_array_extend(findings, json_object_get(told, "findings"));
    sort_findings(findings);
    json_object_set(call->result, "notes", json_object_get(told, "notes"));
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
