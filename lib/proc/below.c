/* Files of a target, by the paths that it sees: see below.h. */
#include "proc/below.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/syscalls.h"
#include "proc/ids.h"

/* One name after the other, and no link followed. */
static int walk(int root, const char *path, int flags)
{
    PRB_AUTO_FD int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[NAME_MAX + 1];
    struct stat info;
    while (at >= 0 && *path) {
        size_t len = strcspn(path, "/");
        if (len > NAME_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        path += len + strspn(path + len, "/");
        if (strcmp(name, "..") == 0) {
            errno = EXDEV;
            return -1;
        }
        int next =
            openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (*path ? O_DIRECTORY : flags));
        if (next < 0)
            return -1;
        close(at);
        at = next;
        if (fstat(at, &info) != 0 || S_ISLNK(info.st_mode)) {
            errno = ELOOP;
            return -1;
        }
    }
    return PRB_STEAL_FD(at);
}

static int find(int root, const char *path, int flags)
{
    path += strspn(path, "/");
    if (!*path)
        path = ".";
    struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    int found = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    /* EPERM: a container's filter that does not know the call. */
    return found < 0 && (errno == ENOSYS || errno == EPERM) ? walk(root, path, flags) : found;
}

int prb_root_open(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int prb_open_below(int root, const char *path)
{
    PRB_AUTO_FD int found = find(root, path, 0);
    struct stat info;
    if (found < 0 || fstat(found, &info) != 0)
        return -1;
    /* The path comes from the target: opening a device or a pipe could do something. */
    if (!S_ISREG(info.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    /* It is this very file that is opened now; a lease that its owner has on it is not waited
     * for. */
    char again[48];
    snprintf(again, sizeof again, "/proc/self/fd/%d", found);
    return open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

int prb_folder_below(int root, const char *path) { return find(root, path, O_DIRECTORY); }

bool prb_stat_below(int root, const char *path, struct stat *out)
{
    PRB_AUTO_FD int found = find(root, path, 0);
    return found >= 0 && fstat(found, out) == 0;
}

int prb_open_as_target(pid_t pid, const char *path)
{
    struct prb_ids ids;
    struct prb_rights before;
    PRB_AUTO_FD int root = prb_root_open(pid);
    if (root < 0 || !prb_ids_of(pid, &ids) || !prb_rights_take(&ids, &before))
        return -1;
    int fd = prb_open_below(root, path);
    prb_rights_give_back(&before);
    return fd;
}
