/*
 * GET /api/v1/p/{}/source?frame=FILE:LINE: lines of a file that a frame of the target names, and no
 * other, read with the rights of the target's user.
 */
#include <errno.h>
#include <string.h>

#include "format/json.h"
#include "proc/below.h"
#include "serve/work/targets.h"

#define FILE_BYTES (4u << 20)
#define AROUND 60 /* lines before and behind the one that is asked */

static bool names(const struct prb_frame *frame, const char *file, size_t len)
{
    const char *const both[] = {frame->filename, frame->short_filename};
    for (size_t i = 0; i < 2; i++)
        if (both[i] && strlen(both[i]) == len && memcmp(both[i], file, len) == 0)
            return frame->kind == PRB_FRAME_PYTHON;
    return false;
}

/* The path of the file that some frame names so, the caller frees it. */
static char *find(struct prb_target *target, const char *file, size_t len, struct prb_error *err)
{
    struct prb_stacks *stacks = prb_stacks_take(target, NULL, err);
    const char *found = NULL;
    for (size_t i = 0; stacks && i < stacks->thread_count; i++)
        for (size_t j = 0; !found && j < stacks->threads[i].frame_count; j++)
            if (names(stacks->threads[i].frames + j, file, len))
                found = stacks->threads[i].frames[j].filename;
    char *path = found ? strdup(found) : NULL;
    if (stacks && !path)
        prb_fail(err, PRB_NOT_FOUND, "no frame is in %.*s now", (int)(len < 200 ? len : 200), file);
    prb_stacks_free(stacks);
    return path;
}

static bool read_file(int fd, struct prb_buf *out, struct prb_error *err)
{
    char *room = prb_buf_reserve(out, FILE_BYTES);
    ssize_t n = 1;
    if (!room)
        return prb_nomem(err);
    while (out->len < FILE_BYTES && (n = read(fd, out->data + out->len, FILE_BYTES - out->len)) > 0)
        out->len += (size_t)n;
    return n >= 0 || prb_fail_sys(err, errno, "reading the source");
}

static json_t *lines_of(const struct prb_buf *text, long first, long last)
{
    json_t *lines = json_array();
    const char *at = text->data, *end = at + text->len;
    for (long number = 1; at < end && number <= last; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        PRB_AUTO_FREE char *line = number >= first ? strndup(at, len) : NULL;
        if (line)
            json_array_append_new(lines, prb_json_text(line));
        at += len + 1;
    }
    return lines;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *frame = prb_question_value(job->question, "frame");
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!frame || !*frame)
        return prb_fail(err, PRB_USAGE, "frame is missing: FILE:LINE, as a frame has them");
    const char *colon = strrchr(frame, ':');
    bool numbered =
        colon && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")] && strlen(colon + 1) < 9;
    size_t len = numbered ? (size_t)(colon - frame) : strlen(frame);
    long line = numbered ? strtol(colon + 1, NULL, 10) : 0;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    const struct prb_target_info *info = prb_target_info(prb_serve_target_open(held));
    if (info->kind != PRB_TARGET_PROCESS)
        return prb_fail(err, PRB_UNSUPPORTED, "a file has no sources");
    PRB_AUTO_FREE char *path = find(prb_serve_target_open(held), frame, len, err);
    if (!path)
        return false;
    PRB_AUTO_FD int fd = prb_open_as_target(info->pid, path);
    if (fd < 0)
        return prb_fail(err, PRB_NOT_FOUND, "%.200s cannot be read: %s", path, strerror(errno));
    if (!read_file(fd, &text, err))
        return false;
    long first = line > AROUND ? line - AROUND : 1;
    return prb_answer_json(job->answer,
                           json_pack("{s:o,s:i,s:o,s:o}", "file", prb_json_text(path), "first",
                                     (int)first, "line", line ? json_integer(line) : json_null(),
                                     "lines", lines_of(&text, first, first + 2 * AROUND)),
                           err);
}

const struct prb_route prb_route_source = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/source",
    .summary = "lines of a file that a frame of the target names",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "frame",
    .seconds = 10,
    .answer = answer,
};
