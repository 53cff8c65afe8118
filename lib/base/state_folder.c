/* See state_folder.h. */
#include "base/state_folder.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

static bool make_folders(char *path, struct prb_error *err)
{
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at)
            continue;
        char end = *at;
        *at = '\0';
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        if (!made)
            prb_fail_sys(err, errno, "%s", path);
        *at = end;
        if (!made || !end)
            return made;
    }
}

char *prb_state_folder(bool make, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const struct passwd *user = NULL;
    if (state && state[0] == '/') {
        prb_buf_addf(&path, "%s/probing", state);
    } else {
        if (!home || home[0] != '/')
            home = (user = getpwuid(geteuid())) ? user->pw_dir : NULL;
        if (!home || home[0] != '/') {
            prb_fail(err, PRB_NOT_FOUND, "this user has no home folder");
            return PRB_NULL(prb_error_remedy(err, "set XDG_STATE_HOME to a folder of yours"));
        }
        prb_buf_addf(&path, "%s/.local/state/probing", home);
    }
    if (!prb_buf_ok(&path))
        return PRB_NULL(prb_nomem(err));
    return !make || make_folders(path.data, err) ? prb_buf_steal(&path) : NULL;
}
