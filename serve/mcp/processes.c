/* The Python processes, what the server has seen of them, and the newest crash dumps. */
#include <inttypes.h>
#include <string.h>

#include "format/json.h"
#include "serve/doors/life.h"
#include "serve/live/watch.h"
#include "serve/mcp/mcp.h"
#include "serve/text/command.h"

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)
PRB_DEFINE_AUTO(prb_crash_files, struct prb_crash_files, prb_crash_files_free)

#define CRASHES 10

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
    prb_mcp_put(call, "crashes", rows);
}

static bool processes(struct prb_mcp_call *call, struct prb_error *err)
{
    const char *match = prb_mcp_text_argument(call, "match");
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    json_t *rows = json_array();
    bool ranks = false;
    prb_mcp_put(call, "processes", rows);
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

const struct prb_mcp_tool prb_mcp_processes = {
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
