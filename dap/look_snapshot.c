/*
 * A snapshot to browse: stacks and locals of all threads are taken with the Python threads stopped,
 * which is milliseconds; the job goes on while the look back end (look.h) shows the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dap/look.h"

PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)

static int temporary(char path[PATH_MAX], struct prb_error *err)
{
    const char *folder = getenv("TMPDIR");
    int n = snprintf(path, PATH_MAX, "%s/probing-snapshot.XXXXXX",
                     folder && *folder == '/' ? folder : "/tmp");
    int fd = n < PATH_MAX ? mkostemp(path, O_CLOEXEC) : -1;
    if (fd < 0)
        prb_look_fail(err, PRB_IO, "cannot make a file for the snapshot: %s", strerror(errno));
    return fd;
}

struct prb_dap_backend *prb_dap_look_snapshot(struct prb_target *taken, struct prb_error *err)
{
    static const struct prb_snapshot_options all = {.locals = true, .stop = true};
    PRB_AUTO(prb_target) struct prb_target *target = taken;
    char path[PATH_MAX];
    uint64_t bytes;
    size_t moved;
    PRB_AUTO_FD int fd = temporary(path, err);
    if (fd < 0)
        return NULL;
    /* The open file serves after its name is gone. */
    struct prb_target *file = prb_snapshot_write(target, path, &all, &bytes, &moved, err)
                                  ? prb_target_open(path, NULL, err)
                                  : NULL;
    unlink(path);
    return file ? prb_dap_look_open(file, err) : NULL;
}
