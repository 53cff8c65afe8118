/* The cache folder: see cache.h.  Relies on openat(2) and rename(2). */
#include "inject/bytecode/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "inject/probe/python/bytecode_form.h"
#include "proc/below.h"
#include "proc/proc.h"

#define FILES_MAX 32
#define PREFIX "bytecode-"
#define PATH_CAP 4096

/* ---- the key ---- */

static uint64_t add_file(uint64_t hash, const struct stat *info)
{
    const uint64_t parts[] = {
        (uint64_t)info->st_dev,          (uint64_t)info->st_ino,
        (uint64_t)info->st_size,         (uint64_t)info->st_mtim.tv_sec,
        (uint64_t)info->st_mtim.tv_nsec, (uint64_t)info->st_ctim.tv_sec,
        (uint64_t)info->st_ctim.tv_nsec,
    };
    return prb_bytecode_hash(hash, parts, sizeof parts);
}

/* The first libpython that is mapped. */
static bool stat_library(pid_t pid, struct stat *out)
{
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    PRB_AUTO(prb_maps) struct prb_maps maps = {0};
    if (!proc || !prb_proc_code_maps(proc, &maps, NULL))
        return false;
    for (size_t i = 0; i < maps.count; i++) {
        const char *path = maps.items[i].path;
        if (path[0] != '/' || strncmp(prb_base_name(path), "libpython", 9) != 0)
            continue;
        PRB_AUTO_FD int root = prb_root_open(pid);
        return root >= 0 && prb_stat_below(root, path, out);
    }
    return false;
}

uint64_t prb_bytecode_key(pid_t pid)
{
    char path[32];
    struct stat info;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (stat(path, &info) != 0)
        return 0;
    uint64_t build = prb_bytecode_build(), hash = prb_bytecode_hash(0, &build, sizeof build);
    hash = add_file(hash, &info);
    return stat_library(pid, &info) ? add_file(hash, &info) : hash;
}

/* ---- the folder ---- */

/* Owned by us, and writable by nobody else. */
static bool is_ours(int fd, mode_t kind)
{
    struct stat info;
    return fstat(fd, &info) == 0 && (info.st_mode & S_IFMT) == kind && info.st_uid == geteuid() &&
           !(info.st_mode & (S_IWGRP | S_IWOTH));
}

/* Open a subfolder; make: create it if missing.  -1: it cannot be opened. */
static int enter(int at, const char *name, bool make, int flags)
{
    if (make)
        mkdirat(at, name, 0700);
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

static int open_folder(bool make)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    PRB_AUTO_FD int base = -1;
    if (cache && cache[0] == '/') {
        base = enter(AT_FDCWD, cache, make, 0);
    } else if (home && home[0] == '/') {
        PRB_AUTO_FD int at = enter(AT_FDCWD, home, false, 0);
        base = at < 0 ? -1 : enter(at, ".cache", make, 0);
    }
    PRB_AUTO_FD int folder = base < 0 ? -1 : enter(base, "probing", make, O_NOFOLLOW);
    return folder >= 0 && is_ours(folder, S_IFDIR) ? PRB_STEAL_FD(folder) : -1;
}

/* ---- reading ---- */

bool prb_bytecode_load(uint64_t key, struct prb_buf *out)
{
    char name[40];
    snprintf(name, sizeof name, PREFIX "%016llx", (unsigned long long)key);
    PRB_AUTO_FD int folder = open_folder(false);
    PRB_AUTO_FD int fd =
        folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    PRB_AUTO(prb_buf) struct prb_buf blob = {0};
    if (fd < 0 || !is_ours(fd, S_IFREG) || !prb_buf_read(&blob, fd, PRB_BYTECODE_MAX) ||
        !prb_bytecode_sound(blob.data, blob.len))
        return false;
    prb_buf_add(out, blob.data, blob.len);
    return prb_buf_ok(out);
}

/* ---- writing ---- */

/* Remove the oldest file when there is no room for one more. */
static void make_room(int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO(dir) DIR *files = again < 0 ? NULL : fdopendir(again);
    char oldest[256] = "";
    time_t since = 0;
    unsigned count = 0;
    struct dirent *entry;
    while (files && (entry = readdir(files))) {
        struct stat info;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (!count++ || info.st_mtime < since) {
            since = info.st_mtime;
            snprintf(oldest, sizeof oldest, "%s", entry->d_name);
        }
    }
    if (count >= FILES_MAX)
        unlinkat(folder, oldest, 0);
}

void prb_bytecode_store(uint64_t key, const struct prb_buf *blob)
{
    char name[40], made[64];
    snprintf(name, sizeof name, PREFIX "%016llx", (unsigned long long)key);
    snprintf(made, sizeof made, "%s.%d.%d", name, (int)getpid(), (int)syscall(SYS_gettid));
    PRB_AUTO_FD int folder = open_folder(true);
    if (folder < 0)
        return;
    make_room(folder);
    PRB_AUTO_FD int fd = openat(folder, made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (!prb_write_all(fd, blob->data, blob->len) || renameat(folder, made, folder, name) != 0)
        unlinkat(folder, made, 0);
}
