/* GET /api/v1/p/{}: one target. */
#include "format/json.h"
#include "serve/work/targets.h"

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    static const char *const kinds[] = {"process", "core", "snapshot", "debugger"};
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    const struct prb_target_info *info = prb_target_info(prb_serve_target_open(held));
    char id[48];
    snprintf(id, sizeof id, "%d.%llu", (int)info->pid,
             (unsigned long long)prb_serve_started(info->pid));
    bool live = info->kind == PRB_TARGET_PROCESS;
    return prb_answer_json(
        job->answer,
        json_pack("{s:o,s:s,s:i,s:o,s:o,s:o,s:o,s:o}", "id",
                  live ? json_string(id) : prb_json_text(job->part[0]), "kind", kinds[info->kind],
                  "pid", (int)info->pid, "command", prb_json_text(info->command), "executable",
                  prb_json_text(info->executable), "python", prb_json_text(info->python), "layout",
                  prb_json_text(info->layout), "file",
                  live ? json_null() : prb_json_text(prb_serve_target_name(held))),
        err);
}

const struct prb_route prb_route_target = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}",
    .summary = "one target: a process (PID, PID.STARTTIME) or a file (file:NAME)",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .seconds = 10,
    .answer = answer,
};
