/*
 * Carrying the library into a target that cannot see its file: in a memory file that the new thread
 * makes, or in a file below the target's root.  Whatever the target says may be a lie.  Its
 * descriptor is copied with the rights that it has (pidfd_getfd(2)) and written to only when it is
 * an empty memory file.  Its folders are entered below its root and with its user's rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/syscalls.h"
#include "inject/enter/steps.h"
#include "proc/below.h"
#include "proc/ids.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#endif
enum { SEALS = 0xf }; /* seal, shrink, grow, write */

/* ---- a memory file ---- */

static bool is_memory_file(const char *link) { return strncmp(link, "/memfd:", 7) == 0; }

/* A memory file that is empty, not sealed, and has our name.  An unlinked file of tmpfs differs in
 * its link's text, and has a seal. */
static bool is_fresh(int fd)
{
    char name[48], link[8] = "";
    struct stat info;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0 &&
           info.st_nlink == 0 && fcntl(fd, F_GET_SEALS) == 0 &&
           readlink(name, link, sizeof link) == sizeof link && is_memory_file(link);
}

/* The target's process id in its own namespace. */
static pid_t inner_pid(struct prb_proc *proc)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    return prb_proc_tids(proc, &tasks, NULL) ? tasks.items[0].inner_tid : prb_proc_pid(proc);
}

/* Whether the target can open its descriptor through its own /proc, which may not be mounted. */
static bool is_seen_there(pid_t pid, pid_t inner, int descriptor)
{
    char path[48], number[16], link[8] = "";
    snprintf(path, sizeof path, "/proc/%d/fd", (int)inner);
    snprintf(number, sizeof number, "%d", descriptor);
    PRB_AUTO_FD int root = prb_root_open(pid);
    PRB_AUTO_FD int folder = root < 0 ? -1 : prb_folder_below(root, path);
    return folder >= 0 && readlinkat(folder, number, link, sizeof link) == sizeof link &&
           is_memory_file(link);
}

/* The loader takes a known name for the library that it has already (glibc, _dl_map_object), and
 * descriptor numbers are reused: so every name is unique.  With the pid, not "self": a debugger
 * that follows the loader opens it, too. */
static void spell(char *path, size_t size, pid_t pid, int descriptor)
{
    uint32_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
        bits = (uint32_t)time(NULL);
    size_t used = (size_t)snprintf(path, size, "/proc/%d/fd/", (int)pid);
    for (; bits && used + 16 < size; bits >>= 1)
        used += (size_t)snprintf(path + used, size - used, bits & 1 ? "./" : "/");
    snprintf(path + used, size - used, "%d", descriptor);
}

bool prb_fill_memory_file(const struct prb_delivery *delivery, struct prb_proc *proc,
                          int descriptor, char *path, size_t size)
{
    pid_t pid = prb_proc_pid(proc), inner = inner_pid(proc);
    PRB_AUTO_FD int process = descriptor < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (process < 0 || !prb_proc_check(proc, NULL))
        return false;
    PRB_AUTO_FD int fd = (int)syscall(SYS_pidfd_getfd, process, descriptor, 0);
    if (fd < 0 || !is_fresh(fd) || !is_seen_there(pid, inner, descriptor) ||
        !prb_write_all(fd, delivery->bytes, delivery->len) || fcntl(fd, F_ADD_SEALS, SEALS) != 0)
        return false;
    spell(path, size, inner, descriptor);
    return true;
}

/* ---- a file ---- */

/* The user who is root in the target's user namespace. */
static uid_t root_there(struct prb_proc *proc)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    unsigned first, outside;
    bool read = prb_proc_text(proc, "uid_map", &text, NULL) &&
                sscanf(text.data, "%u %u", &first, &outside) == 2;
    return read && first == 0 ? outside : 0;
}

/* Whether only the target's user and root can replace a file there. */
static bool is_safe_folder(int folder, uid_t user, uid_t root)
{
    struct stat info;
    if (fstat(folder, &info) || !S_ISDIR(info.st_mode))
        return false;
    bool known = info.st_uid == 0 || info.st_uid == user || info.st_uid == root;
    return known && ((info.st_mode & S_ISVTX) || !(info.st_mode & (S_IWGRP | S_IWOTH)));
}

/* With the file rights of the target's user, who chose these folders. */
static bool make_file(int folder, const char *bytes, size_t len, struct prb_target_file *out)
{
    struct stat info;
    PRB_AUTO_FD int fd =
        openat(folder, out->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && prb_write_all(fd, bytes, len)) {
        out->device = info.st_dev;
        out->inode = info.st_ino;
        return true;
    }
    unlinkat(folder, out->name, 0);
    return false;
}

bool prb_target_file(struct prb_proc *proc, const char *suffix, const char *bytes, size_t len,
                     struct prb_target_file *out)
{
    static const char *const folders[] = {"/dev/shm", "/tmp", "/var/tmp"};
    uint64_t number;
    struct prb_ids ids;
    struct prb_rights before;
    PRB_AUTO_FD int root = prb_root_open(prb_proc_pid(proc));
    if (root < 0 || !prb_ids_of(prb_proc_pid(proc), &ids) || !prb_proc_check(proc, NULL) ||
        getrandom(&number, sizeof number, 0) != sizeof number)
        return false;
    snprintf(out->name, sizeof out->name, ".probing-%016llx%s", (unsigned long long)number, suffix);
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !out->made; i++) {
        PRB_AUTO_FD int folder = prb_folder_below(root, folders[i]);
        if (folder < 0 || !is_safe_folder(folder, ids.users[3], root_there(proc)) ||
            !prb_rights_take(&ids, &before))
            continue;
        out->made = make_file(folder, bytes, len, out);
        prb_rights_give_back(&before);
        if (out->made) {
            snprintf(out->path, sizeof out->path, "%s/%s", folders[i], out->name);
            out->folder = PRB_STEAL_FD(folder);
        }
    }
    return out->made;
}

void prb_target_file_deinit(struct prb_target_file *file)
{
    if (!file->made)
        return;
    unlinkat(file->folder, file->name, 0);
    close(file->folder);
    file->made = false;
}
