/* GET /config/{}: the value of a setting of the probe, as text. */
#include <string.h>

#include "serve/upstream/upstream.h"

#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    char target[16], key[256];
    snprintf(key, sizeof key, "%s", job->part[0]);
    const char *const words[] = {"-p", target, "config", "--", key, NULL};
    if (strchr(key, '='))
        return prb_fail(err, PRB_NOT_FOUND, "there is no setting %.100s", key);
    if (!prb_upstream_target(job, err) || !prb_serve_target_process(job, target, err) ||
        !prb_answer_by_command(job, words, "text/plain; charset=utf-8", err))
        return false;
    struct prb_buf *body = &job->answer->body;
    while (body->len && body->data[body->len - 1] == '\n')
        body->data[--body->len] = '\0';
    return true;
}

const struct prb_route prb_route_upstream_config = {
    .methods = PRB_GET,
    .path = "/config/{}",
    .summary = "the value of a setting",
    .grant = PRB_MAY_LOOK,
    .formats = "text",
    .parameters = "pid",
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
