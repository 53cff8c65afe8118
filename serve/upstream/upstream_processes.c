/* GET /apis/processes/local: the Python processes of this machine, without their environments. */
#include "serve/upstream/upstream.h"

#include "serve/doors/life.h"

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return false;
    json_t *rows = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_process *one = list->items + i;
        if (prb_serve_has(job->serve, one->pid))
            json_array_append_new(
                rows, prb_upstream_process(one->pid, one->executable, one->command, json_object()));
    }
    return prb_answer_json(job->answer, rows, err);
}

const struct prb_route prb_route_upstream_processes = {
    .methods = PRB_GET,
    .path = "/apis/processes/local",
    .summary = "the Python processes of this machine",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
