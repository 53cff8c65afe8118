/* GET /api/v1/crashes: the dumps of the user's crash folder, the newest first. */
#include "format/json.h"
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

#define DUMPS_MAX 200 /* told; more are counted */

PRB_DEFINE_AUTO(prb_crash_files, struct prb_crash_files, prb_crash_files_free)

static json_t *tell(const struct prb_crash_file *file)
{
    char id[300];
    snprintf(id, sizeof id, "file:%s", file->name);
    json_t *row =
        json_pack("{s:o,s:o,s:I,s:f}", "id", prb_json_text(id), "file", prb_json_text(file->name),
                  "bytes", (json_int_t)file->bytes, "written", file->written);
    if (!file->crashed || !row)
        return row;
    json_object_set_new(row, "time", json_real(file->time));
    json_object_set_new(row, "kind", prb_json_text(file->kind));
    json_object_set_new(row, "title", prb_json_text(file->title));
    json_object_set_new(row, "where", prb_json_text(file->place));
    json_object_set_new(row, "group", prb_json_text(file->group));
    json_object_set_new(row, "pid", json_integer(file->pid));
    json_object_set_new(row, "rank", file->rank < 0 ? json_null() : json_integer(file->rank));
    return row;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char folder[PRB_CRASH_PATH_MAX];
    PRB_AUTO(prb_crash_files) struct prb_crash_files files = {0};
    if (job->format[0] == 't')
        return prb_answer_by_command(job, (const char *const[]){"crash", "list", NULL},
                                     "text/plain; charset=utf-8", err);
    if (!prb_serve_crash_folder(folder, err) ||
        !prb_crash_files_read(folder, DUMPS_MAX, prb_serve_job_goes_on, job, &files, err))
        return false;
    json_t *rows = json_array();
    for (size_t i = files.count; i-- > 0;)
        if (!files.items[i].text)
            json_array_append_new(rows, tell(files.items + i));
    return prb_answer_json(job->answer,
                           json_pack("{s:o,s:I,s:b}", "crashes", rows, "count",
                                     (json_int_t)(files.count + files.left_out), "truncated",
                                     files.left_out > 0),
                           err);
}

const struct prb_route prb_route_crashes = {
    .methods = PRB_GET,
    .path = "/api/v1/crashes",
    .summary = "crash dumps, the newest first; each is a target, file:NAME",
    .grant = PRB_MAY_LOOK,
    .formats = "json text",
    .slow = true,
    .seconds = 20,
    .answer = answer,
};
