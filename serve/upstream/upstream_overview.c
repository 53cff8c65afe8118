/* GET /apis/overview: the process; what looks secret in its environment is ***. */
#include "serve/upstream/upstream.h"

#include "serve/work/targets.h"

/* {name: value} of the two columns. */
static json_t *pairs(const struct prb_frame_of_rows *rows)
{
    json_t *all = json_object();
    const json_t *names = json_object_get(json_array_get(rows->cols, 0), "SeqText"),
                 *values = json_object_get(json_array_get(rows->cols, 1), "SeqText");
    for (size_t i = 0; i < json_array_size(names); i++)
        json_object_set(all, json_string_value(json_array_get(names, i)),
                        json_array_get(values, i));
    return all;
}

static void rows_free(struct prb_frame_of_rows *rows)
{
    json_decref(rows->names);
    json_decref(rows->cols);
    json_decref(rows->nulls);
}
PRB_DEFINE_AUTO(prb_frame_of_rows, struct prb_frame_of_rows, rows_free)

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    PRB_AUTO(prb_frame_of_rows) struct prb_frame_of_rows rows = {0};
    char target[16];
    if (!prb_upstream_target(job, err) || !prb_serve_target_process(job, target, err) ||
        !prb_upstream_rows(job, "SELECT name, value FROM system.environment", 0, &rows, err))
        return false;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    const struct prb_target_info *info = prb_target_info(prb_serve_target_open(held));
    return prb_answer_json(
        job->answer, prb_upstream_process(info->pid, info->executable, info->command, pairs(&rows)),
        err);
}

const struct prb_route prb_route_upstream_overview = {
    .methods = PRB_GET,
    .path = "/apis/overview",
    .summary = "one process: command, folder, environment, threads",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "pid",
    .slow = true,
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
