/* GET /api/v1/p/{}/snapshot: a snapshot file of the target, without what its environment hides. */
#include <errno.h>
#include <string.h>

#include "serve/work/targets.h"

static bool take_file(const char *path, struct prb_answer *answer, struct prb_error *err)
{
    PRB_AUTO(file) FILE *file = fopen(path, "re");
    char piece[65536];
    size_t got;
    while (file && (got = fread(piece, 1, sizeof piece, file)) > 0) {
        if (answer->body.len + got > PRB_SERVE_ANSWER_MAX)
            return prb_fail(err, PRB_UNSUPPORTED, "the snapshot is larger than %u MB",
                            PRB_SERVE_ANSWER_MAX >> 20);
        prb_buf_add(&answer->body, piece, got);
    }
    return (file && !ferror(file)) || prb_fail_sys(err, errno, "reading the snapshot");
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    struct prb_snapshot_options options = {0};
    char folder[160], path[180];
    uint64_t bytes;
    size_t moved;
    if (!prb_question_flag(job->question, "native", &options.native, err) ||
        !prb_question_flag(job->question, "locals", &options.locals, err))
        return false;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    snprintf(folder, sizeof folder, "%s/snapshot-XXXXXX", job->serve->folder);
    if (!mkdtemp(folder))
        return prb_fail_sys(err, errno, "making %s", folder);
    snprintf(path, sizeof path, "%s/snap", folder);
    job->answer->type = "application/octet-stream";
    bool ok =
        prb_snapshot_write(prb_serve_target_open(held), path, &options, &bytes, &moved, err) &&
        take_file(path, job->answer, err);
    unlink(path);
    rmdir(folder);
    return ok;
}

const struct prb_route prb_route_snapshot = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/snapshot",
    .summary = "a snapshot file of the target, for `probing -t FILE`",
    .grant = PRB_MAY_LOOK,
    .formats = "snapshot",
    .parameters = "native locals",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
