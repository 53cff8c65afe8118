/* Whose files a plugin may be: see plugin.h. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/plugin.h"

_Static_assert(PATH_MAX <= 4096, "the buffer of prb_plugin_is_safe");

/* A folder with the sticky bit lets others make files, but not replace ours: root trusts none. */
static bool others_write(const struct stat *info)
{
    bool sticky = S_ISDIR(info->st_mode) && info->st_mode & S_ISVTX && geteuid() != 0;
    return info->st_mode & (S_IWGRP | S_IWOTH) && !sticky;
}

static bool is_ours(const char *path, struct prb_error *err)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return prb_fail_sys(err, errno, "%s", path);
    if (info.st_uid != 0 && info.st_uid != geteuid())
        return prb_fail(err, PRB_PERMISSION, "%s belongs to another user", path);
    return !others_write(&info) || prb_fail(err, PRB_PERMISSION, "others can write to %s", path);
}

bool prb_plugin_is_safe(const char *path, char real[4096], struct prb_error *err)
{
    struct stat info;
    if (!realpath(path, real) || stat(real, &info) < 0)
        return prb_fail_sys(err, errno, "%s", path);
    if (!S_ISREG(info.st_mode))
        return prb_fail(err, PRB_UNSUPPORTED, "%s is not a file", path);
    bool good = is_ours("/", err);
    for (char *slash = real + 1; good && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        good = is_ours(real, err);
        *slash = '/';
    }
    return good && is_ours(real, err);
}
