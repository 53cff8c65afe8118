/* GET /api/v1/processes: the Python processes that the user may see. */
#include "format/json.h"
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static json_t *row(const struct prb_process *process)
{
    char id[48];
    snprintf(id, sizeof id, "%d.%llu", (int)process->pid,
             (unsigned long long)prb_serve_started(process->pid));
    json_t *rank = process->rank < 0 ? json_null() : json_integer(process->rank);
    return json_pack(
        "{s:s,s:i,s:i,s:i,s:o,s:o,s:o,s:o,s:f,s:i,s:I,s:f,s:b}", "id", id, "pid", (int)process->pid,
        "ppid", (int)process->ppid, "uid", (int)process->uid, "rank", rank, "name",
        prb_json_text(process->name), "command", prb_json_text(process->command), "python",
        prb_json_text(process->python), "started", process->started, "threads", process->threads,
        "rss", (json_int_t)process->rss, "cpu", process->cpu, "has_probe", process->has_probe);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    if (job->format[0] == 't')
        return prb_answer_by_command(job, (const char *const[]){"list", NULL},
                                     "text/plain; charset=utf-8", err);
    struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return false;
    json_t *rows = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(rows, row(list->items + i));
    prb_process_list_free(list);
    return prb_answer_json(job->answer, json_pack("{s:o}", "processes", rows), err);
}

const struct prb_route prb_route_processes = {
    .methods = PRB_GET,
    .path = "/api/v1/processes",
    .summary = "the Python processes of this machine",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .seconds = 10,
    .answer = answer,
};
