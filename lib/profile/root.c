/*
 * Finds the files of a sampled process below its own root, which is kept open, so that they are
 * found in a container and after the process ended.  Relative names begin at the working folder
 * that it had when it was sampled, and files are opened with the rights that it had then.  Source:
 * proc(5), root, cwd, ns/mnt.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/below.h"
#include "proc/ids.h"
#include "profile/profile.h"

enum { NO_ROOT = -1 };

static bool link_of(pid_t pid, const char *name, char text[PATH_MAX])
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    ssize_t n = readlink(path, text, PATH_MAX - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static int open_in(pid_t pid, const char *name, int flags, struct stat *info)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    PRB_AUTO_FD int fd = open(path, flags | O_CLOEXEC);
    return fd >= 0 && fstat(fd, info) == 0 ? PRB_STEAL_FD(fd) : -1;
}

/* Processes of one container share a root. */
static int root_of(struct prb_profile_box *box, pid_t pid)
{
    struct stat of_mounts, of_root;
    PRB_AUTO_FD int mounts = open_in(pid, "ns/mnt", O_RDONLY, &of_mounts);
    PRB_AUTO_FD int folder = open_in(pid, "root", O_PATH | O_DIRECTORY, &of_root);
    if (mounts < 0 || folder < 0)
        return NO_ROOT;
    for (size_t i = 0; i < box->root_count; i++)
        if (box->roots[i].device == of_root.st_dev && box->roots[i].inode == of_root.st_ino &&
            box->roots[i].mount_inode == of_mounts.st_ino)
            return (int)i;
    if (box->root_count >= PRB_PROFILE_ROOTS_MAX)
        return NO_ROOT;
    box->roots[box->root_count] = (struct prb_root){.device = of_root.st_dev,
                                                    .inode = of_root.st_ino,
                                                    .mount_inode = of_mounts.st_ino,
                                                    .folder = PRB_STEAL_FD(folder),
                                                    .mounts = PRB_STEAL_FD(mounts)};
    return (int)box->root_count++;
}

/* The kernel gives both paths as we see them: the process sees the part below its root. */
static const char *folder_of(struct prb_profile_box *box, pid_t pid)
{
    char root[PATH_MAX], folder[PATH_MAX];
    if (!link_of(pid, "root", root) || !link_of(pid, "cwd", folder))
        return NULL;
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    return strncmp(folder, root, n) == 0 && folder[n] == '/' ? prb_profile_text(box, folder + n)
                                                             : NULL;
}

void prb_profile_find_root(struct prb_profile_box *box, uint32_t process, pid_t pid)
{
    while (box->where_count <= process) {
        if (!PRB_GROW(box->wheres, box->where_count, box->where_cap)) {
            box->failed = true;
            return;
        }
        box->wheres[box->where_count++] = (struct prb_where){.root = NO_ROOT};
    }
    struct prb_where *where = &box->wheres[process];
    where->root = prb_ids_of(pid, &where->ids) ? root_of(box, pid) : NO_ROOT;
    where->folder = folder_of(box, pid);
}

int prb_profile_open_file(const struct prb_profile *profile, uint32_t process, const char *path)
{
    const struct prb_profile_box *box = (const struct prb_profile_box *)profile;
    char whole[PATH_MAX];
    const struct prb_where *where = process < box->where_count ? &box->wheres[process] : NULL;
    if (!where || where->root == NO_ROOT || (*path != '/' && !where->folder)) {
        errno = ENOENT;
        return -1;
    }
    if (snprintf(whole, sizeof whole, "%s/%s", *path == '/' ? "" : where->folder, path) >=
        (int)sizeof whole) {
        errno = ENAMETOOLONG;
        return -1;
    }
    /* The target chose the name: it shows no file that its user may not read. */
    struct prb_rights before;
    if (!prb_rights_take(&where->ids, &before))
        return -1;
    int fd = prb_open_below(box->roots[where->root].folder, whole);
    prb_rights_give_back(&before);
    return fd;
}

void prb_roots_deinit(struct prb_profile_box *box)
{
    for (size_t i = 0; i < box->root_count; i++) {
        close(box->roots[i].folder);
        close(box->roots[i].mounts);
    }
    free(box->wheres);
}
