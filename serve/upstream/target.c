/* Which process is meant. */
#include <string.h>

#include "serve/upstream/upstream.h"

#include "serve/doors/life.h"

#define NAMED_MAX 8 /* in a remedy */

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

static bool choose(struct prb_serve_job *job, const struct prb_process_list *list,
                   struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf pids = {0};
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        pid_t pid = list->items[i].pid;
        if (!prb_serve_has(job->serve, pid))
            continue;
        snprintf(job->part[0], sizeof job->part[0], "%d", (int)pid);
        if (count++ < NAMED_MAX)
            prb_buf_addf(&pids, " %d", (int)pid);
    }
    if (count == 1)
        return true;
    if (!count)
        return prb_fail(err, PRB_NOT_FOUND, "no Python process of yours runs");
    prb_fail(err, PRB_USAGE, "there are %zu Python processes: ?pid= chooses one", count);
    return prb_error_remedy(err, "they are%s%s", pids.data ? pids.data : "",
                            count > NAMED_MAX ? " …" : "");
}

bool prb_upstream_target(struct prb_serve_job *job, struct prb_error *err)
{
    const char *pid = prb_question_value(job->question, "pid");
    if (pid) {
        if (!*pid || strlen(pid) >= sizeof job->part[0] || strpbrk(pid, "/"))
            return prb_fail(err, PRB_USAGE, "pid is a number, not \"%.40s\"", pid);
        snprintf(job->part[0], sizeof job->part[0], "%s", pid);
        return true;
    }
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    return list && choose(job, list, err);
}
