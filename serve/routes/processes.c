/* GET /api/v1/processes: the Python processes that the user may see. */
#include <string.h>

#include "format/json.h"
#include "serve/doors/life.h"
#include "serve/live/watch.h"
#include "serve/routes/by_command.h"
#include "serve/text/looks.h"
#include "serve/work/targets.h"

/* ---- what the server sees by itself ---- */

struct seen {
    struct {
        pid_t pid;
        int64_t step;
        double unchanged;
    } items[PRB_WATCH_PROCESSES];
    size_t count;
};

static void note(void *context, const struct prb_measured *now)
{
    struct seen *seen = context;
    if (seen->count == PRB_WATCH_PROCESSES)
        return;
    seen->items[seen->count].pid = now->pid;
    seen->items[seen->count].step = now->step;
    seen->items[seen->count++].unchanged = now->unchanged;
}

static void add_seen(json_t *row, const struct seen *seen, pid_t pid)
{
    size_t i = 0;
    while (i < seen->count && seen->items[i].pid != pid)
        i++;
    bool known = i < seen->count;
    json_object_set_new(row, "step",
                        known && seen->items[i].step >= 0 ? json_integer(seen->items[i].step)
                                                          : json_null());
    json_object_set_new(row, "since",
                        known && seen->items[i].unchanged >= 0 ? json_real(seen->items[i].unchanged)
                                                               : json_null());
}

/* ---- rows ---- */

/* The job whose rank it is, by the pid of the first of its ranks here; 0: it is no rank, as a
 * DataLoader's worker is none. */
static pid_t job_of(const struct prb_process_list *list, const struct prb_process *process,
                    bool *chosen)
{
    pid_t first = 0;
    if (process->rank < 0)
        return 0;
    prb_process_choose(list, process->pid, true, false, chosen);
    for (size_t i = list->count; i-- > 0;)
        if (chosen[i])
            first = list->items[i].pid;
    return chosen[process - list->items] ? first : 0;
}

static json_t *row(const struct prb_process *process, pid_t first)
{
    char id[48];
    snprintf(id, sizeof id, "%d.%llu", (int)process->pid,
             (unsigned long long)prb_serve_started(process->pid));
    json_t *rank = process->rank < 0 ? json_null() : json_integer(process->rank);
    return json_pack("{s:s,s:i,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:f,s:i,s:I,s:f,s:b}", "id", id, "pid",
                     (int)process->pid, "ppid", (int)process->ppid, "uid", (int)process->uid,
                     "rank", rank, "job", first ? json_integer(first) : json_null(), "name",
                     prb_json_text(process->name), "command", prb_json_text(process->command),
                     "python", prb_json_text(process->python), "started", process->started,
                     "threads", process->threads, "rss", (json_int_t)process->rss, "cpu",
                     process->cpu, "has_probe", process->has_probe);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    if (job->format[0] == 't') {
        const char *words[PRB_LOOK_WORDS + 1] = {"list"};
        char room[PRB_LOOK_ROOM];
        size_t count = 1;
        return prb_look_bind(job->serve, prb_look_named("list", 4), 0, words, &count, room, err) &&
               prb_answer_by_command(job, words, "text/plain; charset=utf-8", err);
    }
    struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return false;
    PRB_AUTO_FREE bool *chosen = calloc(list->count + 1, sizeof *chosen);
    PRB_AUTO_FREE struct seen *seen = calloc(1, sizeof *seen);
    json_t *rows = json_array();
    if (seen && chosen && job->serve->watch)
        prb_watch_each(job->serve->watch, note, seen);
    for (size_t i = 0; seen && chosen && i < list->count; i++) {
        if (!prb_serve_has(job->serve, list->items[i].pid))
            continue;
        json_t *one = row(list->items + i, job_of(list, list->items + i, chosen));
        add_seen(one, seen, list->items[i].pid);
        json_array_append_new(rows, one);
    }
    prb_process_list_free(list);
    return prb_answer_json(job->answer, json_pack("{s:o}", "processes", rows), err);
}

const struct prb_route prb_route_processes = {
    .methods = PRB_GET,
    .path = "/api/v1/processes",
    .summary = "the Python processes of this machine",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .parameters = "every for",
    .seconds = 10,
    .answer = answer,
};
