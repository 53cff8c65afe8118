/* GET /apis/nodes: the ranks of this machine, as nodes of a cluster. */
#include <unistd.h>

#include "serve/upstream/upstream.h"

#include "format/json.h"
#include "serve/doors/life.h"

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

static json_t *number(int value) { return value < 0 ? json_null() : json_integer(value); }

static json_t *node(const struct prb_serve *serve, const struct prb_process *process)
{
    char host[256] = "", address[PRB_ADDRESS_TEXT] = "";
    gethostname(host, sizeof host - 1);
    if (serve->address.len)
        prb_address_print(&serve->address, address);
    return json_pack("{s:o,s:s,s:o,s:o,s:o,s:n,s:n,s:n,s:n,s:n,s:n,s:s,s:I,s:i}", "host",
                     prb_json_text(host), "addr", address, "local_rank",
                     number(process->local_rank), "rank", number(process->rank), "world_size",
                     number(process->world_size), "group_rank", "group_world_size", "role_name",
                     "role_rank", "role_world_size", "role", "status", "running", "timestamp",
                     prb_upstream_now(), "pid", (int)process->pid);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    double offset = 0, limit = PRB_SERVE_ROWS_MAX;
    if (!prb_question_number(job->question, "offset", 0, 1e9, &offset, err) ||
        !prb_question_number(job->question, "limit", 0, 1e9, &limit, err))
        return false;
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    if (!list)
        return false;
    json_t *nodes = json_array();
    double count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct prb_process *one = list->items + i;
        if (one->rank < 0 || !prb_serve_has(job->serve, one->pid))
            continue;
        if (count >= offset && count < offset + limit)
            json_array_append_new(nodes, node(job->serve, one));
        count++;
    }
    return prb_answer_json(job->answer,
                           json_pack("{s:i,s:I,s:I,s:o}", "version", 0, "total", (json_int_t)count,
                                     "offset", (json_int_t)offset, "nodes", nodes),
                           err);
}

const struct prb_route prb_route_upstream_nodes = {
    .methods = PRB_GET,
    .path = "/apis/nodes",
    .summary = "the ranks of this machine",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "offset limit since_version",
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
