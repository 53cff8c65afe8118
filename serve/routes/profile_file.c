/* A profile is written to a file of ours, which becomes the answer. */
#include "serve/routes/profile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

const char *prb_profile_media_type(const char *format)
{
    static const struct {
        const char *format, *type;
    } types[] = {{"flamegraph", "image/svg+xml"},
                 {"collapsed", "text/plain; charset=utf-8"},
                 {"speedscope", "application/json"},
                 {"chrome", "application/json"},
                 {"firefox", "application/json"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].format, format) == 0)
            return types[i].type;
    return "application/octet-stream";
}

bool prb_answer_profile(struct prb_serve_job *job, const struct prb_profile *profile,
                        const struct prb_profile *before, struct prb_error *err)
{
    const struct prb_profile_format *format = prb_profile_format_find(job->format);
    const struct prb_profile_style style = {.before = before};
    char folder[160], path[192], elsewhere[PRB_CRASH_PATH_MAX] = "";
    snprintf(folder, sizeof folder, "%s/profile-XXXXXX", job->serve->folder);
    if (!format)
        return prb_fail(err, PRB_INTERNAL, "there is no format %s", job->format);
    if (!mkdtemp(folder))
        return prb_fail_sys(err, errno, "%s", folder);
    snprintf(path, sizeof path, "%s/file", folder);
    bool ok = prb_profile_write(profile, format, &style, path, elsewhere, sizeof elsewhere, err);
    const char *written = *elsewhere ? elsewhere : path;
    if (ok) {
        PRB_AUTO_FD int fd = open(written, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        ok = (fd >= 0 && prb_buf_read(&job->answer->body, fd, PRB_SERVE_ANSWER_MAX)) ||
             prb_fail_sys(err, errno, "%s", written);
    }
    unlink(written);
    rmdir(folder);
    job->answer->type = prb_profile_media_type(job->format);
    return ok;
}
