/* The tools that only look. */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "format/json.h"
#include "net/address.h"
#include "serve/doors/life.h"
#include "serve/live/diagnose.h"
#include "serve/live/watch.h"
#include "serve/mcp/mcp.h"
#include "serve/text/command.h"
#include "serve/work/targets.h"

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)
PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)
PRB_DEFINE_AUTO(prb_crash_files, struct prb_crash_files, prb_crash_files_free)
PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)
PRB_DEFINE_AUTO_PTR(prb_stack_groups, struct prb_stack_groups, prb_stack_groups_free)

#define TARGET                                                                                     \
    "\"target\":{\"type\":\"string\",\"maxLength\":200,\"description\":\"a pid, the id that "      \
    "processes gave, a part of a command line, file:NAME, or @JOB[:RANKS] for ranks of a job\"}"
#define FRAMES_SHOWN 40
#define PATHS 10
#define HOTTEST 20
#define CRASHES 10

static const char *text_argument(const struct prb_mcp_call *call, const char *key)
{
    return json_string_value(json_object_get(call->arguments, key));
}

static json_int_t number(const struct prb_mcp_call *call, const char *key, json_int_t otherwise)
{
    const json_t *value = json_object_get(call->arguments, key);
    return value ? (json_int_t)json_number_value(value) : otherwise;
}

static void put(const struct prb_mcp_call *call, const char *key, json_t *value)
{
    json_object_set_new(call->result, key, value);
}

/* ---- targets ---- */

bool prb_mcp_target(const struct prb_mcp_call *call, struct prb_mcp_name *out,
                    struct prb_error *err)
{
    const struct prb_mcp *mcp = call->mcp;
    const char *wanted = text_argument(call, "target");
    char note[PRB_NOTE_MAX];
    bool named = strncmp(wanted, "file:", 5) != 0 && wanted[strspn(wanted, "0123456789.")];
    pid_t pid = named ? prb_process_by_name(wanted, note, err) : 0;
    if (named && !pid)
        return false;
    if (named)
        snprintf(out->text, sizeof out->text, "%d", (int)pid);
    else
        snprintf(out->text, sizeof out->text, "%s", wanted);
    out->wanted = (struct prb_serve_wanted){
        .serve = mcp->serve, .targets = mcp->targets, .name = out->text, .until = mcp->until};
    return true;
}

/* What `processes` gives as id. */
static void tell_target(const struct prb_mcp_call *call, pid_t pid)
{
    put(call, "target",
        json_sprintf("%d.%llu", (int)pid, (unsigned long long)prb_serve_started(pid)));
}

/* What the model can do instead. */
static bool not_found(const struct prb_mcp_name *name, struct prb_error *err)
{
    if (err->code == PRB_NOT_FOUND && !err->remedy[0])
        prb_error_remedy(err, strncmp(name->text, "file:", 5) == 0
                                  ? "files are named when the server is started, or are crash dumps"
                                  : "the tool `processes` lists them");
    return false;
}

bool prb_mcp_spec(const struct prb_mcp_call *call, char spec[PATH_MAX], struct prb_error *err)
{
    struct prb_mcp_name name;
    if (!prb_mcp_target(call, &name, err))
        return false;
    if (!prb_serve_target_spec(&name.wanted, spec, err))
        return not_found(&name, err);
    if (strncmp(name.text, "file:", 5) != 0)
        tell_target(call, (pid_t)strtol(spec, NULL, 10));
    return true;
}

/* Shared with who else asks.  slow: what a statement may take holds up no look. */
static struct prb_serve_target *hold(struct prb_mcp_call *call, bool slow, struct prb_error *err)
{
    struct prb_mcp_name name;
    if (!prb_mcp_target(call, &name, err))
        return NULL;
    name.wanted.slow = slow;
    struct prb_serve_target *held = prb_serve_target_hold_wanted(&name.wanted, err);
    if (!held)
        return PRB_NULL(not_found(&name, err));
    const struct prb_target_info *info = prb_target_info(prb_serve_target_open(held));
    if (info->kind == PRB_TARGET_PROCESS)
        tell_target(call, info->pid);
    return held;
}

/* ---- processes ---- */

/* What the server has seen of a process by itself. */
struct seen {
    pid_t pid;
    json_t *row;
};

static void add_seen(void *context, const struct prb_measured *now)
{
    const struct seen *seen = context;
    if (now->pid != seen->pid)
        return;
    if (now->step >= 0)
        json_object_set_new(seen->row, "step", json_integer(now->step));
    if (now->unchanged >= 0)
        json_object_set_new(seen->row, "since", json_real(now->unchanged));
}

/* The newest crash dumps, which are targets. */
static void add_crashes(const struct prb_mcp_call *call)
{
    char folder[PRB_CRASH_PATH_MAX];
    struct prb_error why; /* no folder: nothing has crashed */
    PRB_AUTO(prb_crash_files) struct prb_crash_files files = {0};
    json_t *rows = json_array();
    if (prb_serve_crash_folder(folder, &why) &&
        prb_crash_files_read(folder, CRASHES, call->mcp->goes_on, call->mcp->context, &files, &why))
        for (size_t i = files.count; i-- > 0;) {
            const struct prb_crash_file *one = files.items + i;
            if (!one->crashed || one->text)
                continue;
            json_array_append_new(
                rows, json_pack("{s:o,s:f,s:i,s:o,s:o}", "id", json_sprintf("file:%s", one->name),
                                "time", one->time, "pid", (int)one->pid, "title",
                                prb_json_text(one->title), "where", prb_json_text(one->place)));
        }
    put(call, "crashes", rows);
}

static bool processes(struct prb_mcp_call *call, struct prb_error *err)
{
    const char *match = text_argument(call, "match");
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    json_t *rows = json_array();
    bool ranks = false;
    put(call, "processes", rows);
    if (!list)
        return false;
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_process *one = &list->items[i];
        char id[48], command[400];
        if ((match && (!one->command || !strstr(one->command, match))) ||
            (call->mcp->serve && !prb_serve_has(call->mcp->serve, one->pid)))
            continue;
        ranks = ranks || one->rank >= 0;
        snprintf(id, sizeof id, "%d.%" PRIu64, (int)one->pid, prb_serve_started(one->pid));
        snprintf(command, sizeof command, "%s", one->command ? one->command : "");
        struct seen seen = {
            one->pid,
            json_pack("{s:s,s:i,s:o,s:o,s:f,s:I,s:i,s:o}", "id", id, "pid", (int)one->pid, "rank",
                      one->rank < 0 ? json_null() : json_integer(one->rank), "command",
                      prb_json_text(command), "cpu", one->cpu, "rss", (json_int_t)one->rss,
                      "threads", one->threads, "python", prb_json_text(one->python))};
        if (call->mcp->serve && call->mcp->serve->watch)
            prb_watch_each(call->mcp->serve->watch, add_seen, &seen);
        json_array_append_new(rows, seen.row);
    }
    add_crashes(call);
    if (ranks)
        prb_mcp_add_jobs(call);
    return true;
}

static const struct prb_mcp_tool tool_processes = {
    .name = "processes",
    .title = "Python processes",
    .description =
        "Lists the Python processes of this machine that can be looked at: id, rank in its job, "
        "command line, CPU time (s), memory (bytes), step, seconds since its main thread moved; "
        "jobs "
        "of several ranks; the newest crash dumps. Begin here, then `diagnose` one.",
    .input =
        "{\"type\":\"object\",\"properties\":{\"match\":{\"type\":\"string\",\"maxLength\":200,"
        "\"description\":\"only those whose command line has this\"}},"
        "\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"processes\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"object\"}},\"truncated\":{\"type\":\"boolean\"}},\"required\":["
              "\"processes\"]}",
    .call = processes,
};

/* ---- diagnose ---- */

static bool diagnose(struct prb_mcp_call *call, struct prb_error *err)
{
    char spec[PATH_MAX];
    const char *skill = text_argument(call, "skill");
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

static const struct prb_mcp_tool tool_diagnose = {
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
        "{\"type\":\"object\",\"properties\":{" TARGET
        ",\"skill\":{\"type\":\"string\",\"maxLength\":64,\"description\":\"one of them\"},"
        "\"seconds\":{\"type\":\"number\",\"minimum\":0.5,\"maximum\":60,\"description\":\"how "
        "long to look\"}},\"required\":[\"target\"],\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"findings\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"object\",\"required\":[\"severity\",\"finding\",\"where\",\"next\"]}},"
              "\"tables\":{\"type\":\"array\"},\"notes\":{\"type\":\"array\"},\"truncated\":{"
              "\"type\":\"boolean\"}},\"required\":[\"findings\",\"tables\"]}",
    .call = diagnose,
};

/* ---- stacks ---- */

static json_t *frames_json(const struct prb_thread *thread)
{
    json_t *frames = json_array();
    for (size_t i = 0; i < thread->frame_count && i < FRAMES_SHOWN; i++) {
        const struct prb_frame *frame = &thread->frames[i];
        char text[400];
        snprintf(text, sizeof text, "%s (%s:%d)", frame->qualname ? frame->qualname : frame->name,
                 frame->filename ? frame->filename
                 : frame->module ? frame->module
                                 : "?",
                 frame->line);
        json_array_append_new(frames, prb_json_text(text));
    }
    if (thread->frame_count > FRAMES_SHOWN)
        json_array_append_new(
            frames, json_sprintf("… and %zu outer frames", thread->frame_count - FRAMES_SHOWN));
    return frames;
}

static bool is_wanted(const struct prb_stacks *stacks, const struct prb_stack_group *group,
                      const char *thread)
{
    char tid[16];
    for (size_t i = 0; thread && i < group->count; i++) {
        const struct prb_thread *one = &stacks->threads[group->threads[i]];
        snprintf(tid, sizeof tid, "%d", (int)one->os_thread_id);
        if (strcmp(thread, tid) == 0 || (one->name && strcmp(thread, one->name) == 0))
            return true;
    }
    return !thread;
}

static json_t *seconds_json(double since) { return since < 0 ? json_null() : json_real(since); }

/* since: of each thread of stacks.  The group has not changed for as long as its last thread has not. */
static json_t *group_json(const struct prb_stacks *stacks, const struct prb_stack_group *group,
                          const double *since)
{
    json_t *threads = json_array();
    double least = since[group->threads[0]];
    for (size_t i = 0; i < group->count; i++) {
        const struct prb_thread *one = &stacks->threads[group->threads[i]];
        double own = since[group->threads[i]];
        least = own < least ? own : least;
        if (i < FRAMES_SHOWN)
            json_array_append_new(threads,
                                  json_pack("{s:i,s:o,s:b,s:o}", "id", (int)one->os_thread_id,
                                            "name", prb_json_text(one->name), "active", one->active,
                                            "since", seconds_json(own)));
    }
    return json_pack("{s:I,s:o,s:o,s:o}", "count", (json_int_t)group->count, "since",
                     seconds_json(least), "threads", threads, "frames",
                     frames_json(&stacks->threads[group->threads[0]]));
}

/* Since when each thread stands, as the server has seen it; -1: nobody has.  The caller frees it. */
static double *since_of(const struct prb_mcp *mcp, const struct prb_stacks *stacks)
{
    double *since = calloc(stacks->thread_count + 1, sizeof *since);
    for (size_t i = 0; since && i < stacks->thread_count; i++)
        since[i] = -1;
    if (since && mcp->serve && stacks->target.kind == PRB_TARGET_PROCESS)
        prb_watch_since(mcp->serve->watch, stacks->target.pid,
                        prb_serve_started(stacks->target.pid), stacks, since);
    return since;
}

/* Who has the GIL, by a second look at that thread where the first had no native frames. */
static json_t *gil_json(struct prb_serve_target *held, const struct prb_stacks *stacks, bool native)
{
    char holder[300] = "", again[300] = "";
    prb_gil_holder_of(stacks, holder, sizeof holder);
    for (size_t i = 0; i < stacks->thread_count && !native && *holder; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        const struct prb_stack_options options = {
            .native = true, .hide_secrets = true, .only_thread = (uint64_t)thread->os_thread_id};
        if (thread->gil != PRB_GIL_HOLDING)
            continue;
        PRB_AUTO(prb_stacks)
        struct prb_stacks *one = prb_stacks_take(prb_serve_target_open(held), &options, NULL);
        if (one)
            prb_gil_holder_of(one, again, sizeof again);
        break;
    }
    return *again ? prb_json_text(again) : *holder ? prb_json_text(holder) : json_null();
}

static bool stacks(struct prb_mcp_call *call, struct prb_error *err)
{
    json_t *groups = json_array();
    put(call, "groups", groups);
    const struct prb_stack_options options = {
        .native = json_is_true(json_object_get(call->arguments, "native")), .hide_secrets = true};
    json_int_t limit = number(call, "limit", 20);
    if (prb_mcp_is_job(call))
        return prb_mcp_job_stacks(call, (size_t)limit, err);
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = hold(call, false, err);
    PRB_AUTO(prb_stacks)
    struct prb_stacks *taken =
        held ? prb_stacks_take(prb_serve_target_open(held), &options, err) : NULL;
    PRB_AUTO(prb_stack_groups)
    struct prb_stack_groups *grouped = taken ? prb_stacks_group(taken, err) : NULL;
    if (!grouped)
        return false;
    PRB_AUTO_FREE double *since = since_of(call->mcp, taken);
    if (!since)
        return prb_nomem(err);
    for (size_t i = 0; i < grouped->count; i++) {
        if (!is_wanted(taken, &grouped->items[i], text_argument(call, "thread")))
            continue;
        if ((json_int_t)json_array_size(groups) == limit) {
            put(call, "truncated", json_true());
            break;
        }
        json_array_append_new(groups, group_json(taken, &grouped->items[i], since));
    }
    put(call, "gil", gil_json(held, taken, options.native));
    return true;
}

static const struct prb_mcp_tool tool_stacks = {
    .name = "stacks",
    .title = "Stacks of all threads",
    .description = "Where each thread is now: groups of threads with the same stack, the largest "
                   "first, frames "
                   "innermost first, and who holds the GIL. Nothing is stopped but, with native, "
                   "single threads for "
                   "0.1 ms.",
    .input =
        "{\"type\":\"object\",\"properties\":{" TARGET
        ",\"native\":{\"type\":\"boolean\",\"description\":\"C and C++ frames, too\"},"
        "\"thread\":{\"type\":\"string\",\"maxLength\":100,\"description\":\"only this one: its "
        "number or name\"},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":200,"
        "\"description\":\"groups; 20 if not given\"}},\"required\":[\"target\"],"
        "\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"groups\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"object\"}},\"gil\":{\"type\":[\"string\",\"null\"]},\"truncated\":{"
              "\"type\":\"boolean\"}},\"required\":[\"groups\",\"gil\"]}",
    .call = stacks,
};

/* ---- query, schema ---- */

struct rows {
    struct prb_mcp_call *call;
    json_t *columns, *rows;
    json_int_t most;
};

static json_t *cell(const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        return json_integer(value->integer);
    if (value->type == PRB_REAL)
        return json_real(value->real) ?: json_null();
    return value->type == PRB_TEXT ? prb_json_text(value->text) : json_null();
}

static bool take_row(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    struct rows *rows = context;
    if (!row) {
        json_array_clear(rows->columns);
        json_array_clear(rows->rows);
        for (size_t i = 0; i < columns; i++)
            json_array_append_new(rows->columns, prb_json_text(names[i]));
        return true;
    }
    if ((json_int_t)json_array_size(rows->rows) == rows->most) {
        put(rows->call, "truncated", json_true());
        return false;
    }
    json_t *line = json_array();
    for (size_t i = 0; i < columns; i++)
        json_array_append_new(line, cell(&row[i]));
    json_array_append_new(rows->rows, line);
    return true;
}

static bool run_sql(struct prb_mcp_call *call, struct prb_db *db, const char *sql, json_int_t most,
                    struct prb_error *err)
{
    struct rows rows = {call, json_array(), json_array(), most};
    put(call, "columns", rows.columns);
    put(call, "rows", rows.rows);
    put(call, "truncated", json_false());
    prb_db_watch(db, call->mcp->goes_on, call->mcp->context);
    bool ok = prb_db_query(db, sql, take_row, &rows, err);
    prb_db_watch(db, NULL, NULL);
    put(call, "warning", prb_json_text(prb_db_warning(db)));
    return ok;
}

static bool query(struct prb_mcp_call *call, struct prb_error *err)
{
    if (prb_mcp_is_job(call))
        return prb_mcp_job_query(call, text_argument(call, "sql"),
                                 (size_t)number(call, "limit", 100), err);
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = hold(call, true, err);
    struct prb_db *db = held ? prb_serve_target_db(held, err) : NULL;
    return db && run_sql(call, db, text_argument(call, "sql"), number(call, "limit", 100), err);
}

#define ROWS_SCHEMA                                                                                \
    "{\"type\":\"object\",\"properties\":{\"columns\":{\"type\":\"array\",\"items\":{\"type\":"    \
    "\"string\"}},\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"array\"}},\"warning\":{"      \
    "\"type\":[\"string\",\"null\"]},\"truncated\":{\"type\":\"boolean\"}},\"required\":["         \
    "\"columns\",\"rows\"]}"

static const struct prb_mcp_tool tool_query = {
    .name = "query",
    .title = "Ask in SQL",
    .description =
        "Runs SQL (SQLite's, read-only) over the tables of a process, core or dump: stacks, "
        "locals, "
        "objects, tensors, memory, steps. `schema` has the tables. One statement sees one moment.",
    .input =
        "{\"type\":\"object\",\"properties\":{" TARGET
        ",\"sql\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":20000},\"limit\":{\"type\":"
        "\"integer\",\"minimum\":1,\"maximum\":1000,\"description\":\"rows; 100 if not given\"}},"
        "\"required\":[\"target\",\"sql\"],\"additionalProperties\":false}",
    .output = ROWS_SCHEMA,
    .call = query,
};

static bool schema(struct prb_mcp_call *call, struct prb_error *err)
{
    const char *table = text_argument(call, "table");
    char sql[200] = "SELECT table_schema || '.' || table_name AS \"table\", doc FROM "
                    "information_schema.tables";
    if (table &&
        table[strspn(table, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")])
        return prb_fail(err, PRB_USAGE, "\"%.60s\" is not the name of a table", table);
    if (table)
        snprintf(sql, sizeof sql, "DESCRIBE %.100s", table);
    PRB_AUTO(prb_db) struct prb_db *db = prb_db_open(NULL, err);
    return db && run_sql(call, db, sql, 1000, err);
}

static const struct prb_mcp_tool tool_schema = {
    .name = "schema",
    .title = "Tables and columns",
    .description =
        "The SQL tables with a sentence each; with `table` its columns: type, unit, meaning.",
    .input =
        "{\"type\":\"object\",\"properties\":{\"table\":{\"type\":\"string\",\"maxLength\":100,"
        "\"description\":\"such as python.backtrace\"}},\"additionalProperties\":false}",
    .output = ROWS_SCHEMA,
    .call = schema,
};

/* ---- profile ---- */

struct profile {
    struct prb_mcp_call *call;
    struct prb_buf text, said;
};

static bool take_piece(void *context, bool error, const char *bytes, size_t count)
{
    struct profile *profile = context;
    struct prb_buf *out = error ? &profile->said : &profile->text;
    if (out->len + count > (16u << 20))
        return error;
    prb_buf_add(out, bytes, count);
    return prb_buf_ok(out);
}

static bool goes_on(void *context)
{
    const struct prb_mcp *mcp = ((struct profile *)context)->call->mcp;
    return !mcp->goes_on || mcp->goes_on(mcp->context);
}

static void add_to(json_t *table, const char *name, const char *key, json_int_t count)
{
    json_t *row = json_object_get(table, name);
    if (!row)
        json_object_set_new(table, name, row = json_pack("{s:i,s:i}", "own", 0, "total", 0));
    json_object_set_new(row, key,
                        json_integer(json_integer_value(json_object_get(row, key)) + count));
}

/* "outer;inner COUNT" */
static json_int_t take_line(char *line, json_t *functions, json_t *paths)
{
    char *space = strrchr(line, ' '), *save = NULL, *last = NULL;
    json_int_t count = space ? strtoll(space + 1, NULL, 10) : 0;
    if (!space || count <= 0)
        return 0;
    *space = '\0';
    json_array_append_new(paths,
                          json_pack("{s:o,s:I}", "path", prb_json_text(line), "samples", count));
    json_t *seen = json_object();
    for (char *at = strtok_r(line, ";", &save); at; at = strtok_r(NULL, ";", &save)) {
        json_t *safe = prb_json_text(at);
        const char *name = json_string_value(safe);
        if (name && !json_object_get(seen, name))
            add_to(functions, name, "total", count);
        if (name)
            json_object_set_new(seen, name, json_true());
        json_decref(safe);
        last = at;
    }
    json_t *safe = last ? prb_json_text(last) : NULL;
    if (safe && json_string_value(safe))
        add_to(functions, json_string_value(safe), "own", count);
    json_decref(safe);
    json_decref(seen);
    return count;
}

/* Take the row with the greatest number out of an array, or NULL. */
static json_t *take_greatest(json_t *rows, const char *key)
{
    size_t best = json_array_size(rows);
    json_int_t most = -1;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_int_t value = json_integer_value(json_object_get(json_array_get(rows, i), key));
        if (value > most) {
            most = value;
            best = i;
        }
    }
    json_t *row = json_incref(json_array_get(rows, best));
    if (row)
        json_array_remove(rows, best);
    return row;
}

static void tell_hottest(struct prb_mcp_call *call, json_t *functions, json_t *paths,
                         json_int_t all)
{
    json_t *rows = json_array(), *hottest = json_array(), *best = json_array(), *value, *row;
    const char *name;
    json_object_foreach(functions, name, value)
    {
        json_object_set_new(value, "function", json_string(name));
        json_array_append(rows, value);
    }
    while (json_array_size(hottest) < HOTTEST && (row = take_greatest(rows, "own")))
        json_array_append_new(hottest, row);
    while (json_array_size(best) < PATHS && (row = take_greatest(paths, "samples")))
        json_array_append_new(best, row);
    json_decref(rows);
    put(call, "samples", json_integer(all));
    put(call, "hottest", hottest);
    put(call, "paths", best);
}

json_t *prb_mcp_hottest_begin(void) { return json_pack("{s:{},s:[]}", "functions", "paths"); }

json_int_t prb_mcp_hottest_add(json_t *hottest, char *line)
{
    return take_line(line, json_object_get(hottest, "functions"),
                     json_object_get(hottest, "paths"));
}

void prb_mcp_hottest_tell(struct prb_mcp_call *call, json_t *hottest, json_int_t all)
{
    tell_hottest(call, json_object_get(hottest, "functions"), json_object_get(hottest, "paths"),
                 all);
    json_decref(hottest);
}

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
        put(call, "link", json_null());
        return;
    }
    prb_address_print(&serve->address, place);
    put(call, "link",
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
    struct profile run = {.call = call};
    int status;
    bool job = prb_mcp_is_job(call);
    if (!job && !prb_mcp_spec(call, spec, err))
        return false;
    snprintf(seconds, sizeof seconds, "%d", (int)number(call, "seconds", 5));
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
    const struct prb_command_run command = {call->mcp->program, words, goes_on, take_piece, &run};
    bool ok = prb_command_run(&command, &status, err);
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
    put(call, "dropped", json_integer(dropped(run.said.data)));
    prb_buf_deinit(&run.text);
    prb_buf_deinit(&run.said);
    return ok;
}

static const struct prb_mcp_tool tool_profile = {
    .name = "profile",
    .title = "Where the time goes",
    .description =
        "Samples the process from outside for some seconds: the functions with the most "
        "time of their "
        "own, and the ten heaviest paths. mode says which time: active (the default), cpu, "
        "wall (waiting, too; as idle), gil. Of a job also by rank. link is for the user.",
    .input =
        "{\"type\":\"object\",\"properties\":{" TARGET
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

const struct prb_mcp_tool *const prb_mcp_tools[] = {
    &tool_processes, &tool_diagnose, &tool_stacks,  &tool_query,
    &tool_schema,    &tool_profile,  &prb_mcp_eval, NULL,
};
