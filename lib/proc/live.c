/*
 * A living process, through a descriptor of its folder in /proc: when the process ends and its
 * number is given to another, the descriptor answers ESRCH and never the other's texts.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "base/syscalls.h"
#include "proc/below.h"
#include "proc/source.h"
#include "proc/stat.h"

/* Texts of /proc/PID are cut off here with an error: 16 MiB of maps are 160,000 lines. */
#define TEXT_MAX (16u << 20)
/* Of a text of one line: the longest is stat, whose some 52 numbers have at most 20 digits. */
#define LINE_MAX_BYTES 2048

/* What makes it the program it was: an exec changes the stack's place even when it runs the same
 * file. */
struct identity {
    uint64_t starttime, startcode, startstack;
    dev_t dev;
    ino_t inode;
};

struct live {
    struct prb_proc base;
    int folder; /* /proc/PID */
    int tasks;  /* its task/, a shorter way to the many texts below; -1: not opened yet */
    int maps;   /* its maps; -1: not opened yet */
    int call;   /* the syscall text that was asked for last, which is asked for twice; -1: none */
    char call_name[32];
    struct identity identity;
};

static bool gone(const struct live *live, struct prb_error *err)
{
    return prb_fail(err, PRB_GONE, "process %d ended", (int)live->base.pid);
}

/* An errno of a file of /proc/PID. */
static bool refused(const struct live *live, int sys, const char *name, struct prb_error *err)
{
    struct stat info;
    if (sys == ESRCH || (sys == ENOENT && fstatat(live->folder, "stat", &info, 0) != 0))
        return gone(live, err);
    char what[96];
    if (sys == EACCES || sys == EPERM) {
        snprintf(what, sizeof what, "read /proc/%d/%s of", (int)live->base.pid, name);
        return prb_permission_explain(err, live->base.pid, sys, what);
    }
    return prb_fail_sys(err, sys, "cannot read /proc/%d/%s", (int)live->base.pid, name);
}

static int open_text(struct live *live, const char *name)
{
    static const char task[] = "task/";
    const size_t skip = sizeof task - 1;
    if (strncmp(name, task, skip) != 0)
        return openat(live->folder, name, O_RDONLY | O_CLOEXEC);
    if (live->tasks < 0)
        live->tasks = openat(live->folder, task, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return live->tasks < 0 ? -1 : openat(live->tasks, name + skip, O_RDONLY | O_CLOEXEC);
}

static int live_open(struct prb_proc *proc, const char *name)
{
    return open_text((struct live *)proc, name);
}

/* A text of one line comes whole: there is no need to ask for its end. */
static bool read_line(struct prb_buf *out, int fd)
{
    return prb_buf_read_some(out, fd, LINE_MAX_BYTES) >= 0;
}

/* What a thread waits in is read before its stack and after it: the second time, by the same
 * descriptor.  (Read from its start again, the kernel writes the text anew.) */
static bool read_call(struct live *live, const char *name, struct prb_buf *out)
{
    if (live->call >= 0 && strcmp(live->call_name, name) == 0)
        return lseek(live->call, 0, SEEK_SET) == 0 && read_line(out, live->call);
    if (live->call >= 0)
        close(live->call);
    live->call = open_text(live, name);
    snprintf(live->call_name, sizeof live->call_name, "%s", name);
    return live->call >= 0 && read_line(out, live->call);
}

static bool read_whole(struct live *live, const char *name, bool line, struct prb_buf *out)
{
    PRB_AUTO_FD int fd = open_text(live, name);
    return fd >= 0 && (line ? read_line(out, fd) : prb_buf_read(out, fd, TEXT_MAX));
}

static bool live_text(struct prb_proc *proc, const char *name, struct prb_buf *out,
                      struct prb_error *err)
{
    struct live *live = (struct live *)proc;
    const char *base = prb_base_name(name);
    if (strcmp(base, "syscall") == 0 ? read_call(live, name, out)
                                     : read_whole(live, name, strcmp(base, "stat") == 0, out))
        return true;
    if (errno == EFBIG)
        return prb_fail(err, PRB_CORRUPT, "/proc/%d/%s is longer than %u MiB", (int)proc->pid, name,
                        TEXT_MAX >> 20);
    return out->failed ? prb_nomem(err) : refused(live, errno, name, err);
}

static bool live_tids(struct prb_proc *proc, struct prb_buf *out, struct prb_error *err)
{
    struct live *live = (struct live *)proc;
    int fd = openat(live->folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return refused(live, errno, "task", err);
    PRB_AUTO(dir) DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return prb_nomem(err);
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] != '.')
            prb_buf_addf(out, "%s\n", entry->d_name);
    }
    return true;
}

/* To ask for single maps; after an exec there are none in it. */
static int maps_of(struct live *live)
{
    if (live->maps < 0)
        live->maps = openat(live->folder, "maps", O_RDONLY | O_CLOEXEC);
    return live->maps;
}

static bool live_code_maps(struct prb_proc *proc, struct prb_maps *out)
{
    int fd = maps_of((struct live *)proc);
    return fd >= 0 && prb_code_maps_query(fd, out);
}

static bool live_map_from(struct prb_proc *proc, prb_addr addr, bool code, struct prb_map *out)
{
    int fd = maps_of((struct live *)proc);
    return fd >= 0 && prb_map_query(fd, addr, code, out);
}

static bool identify(struct live *live, struct identity *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct prb_stat stat;
    struct statx exe;
    if (!live_text(&live->base, "stat", &text, err))
        return false;
    if (!prb_stat_parse(text.data, &stat))
        return prb_fail(err, PRB_CORRUPT, "/proc/%d/stat cannot be parsed", (int)live->base.pid);
    if (stat.state == 'Z' || stat.state == 'X')
        return prb_fail(err, PRB_GONE, "process %d ended%s", (int)live->base.pid,
                        stat.field[PRB_STAT_THREADS] > 1
                            ? " its main thread; its other threads are out of reach"
                            : " (its parent has not collected it yet)");
    struct identity now = {.starttime = (uint64_t)stat.field[PRB_STAT_STARTTIME],
                           .startcode = (uint64_t)stat.field[PRB_STAT_STARTCODE],
                           .startstack = (uint64_t)stat.field[PRB_STAT_STARTSTACK]};
    /* Without the right to see it, the rest must do.  As the kernel knows it: its file system
     * may be somebody's program (FUSE) or far away (NFS), and never answer. */
    if (statx(live->folder, "exe", AT_STATX_DONT_SYNC, STATX_INO, &exe) == 0) {
        now.dev = makedev(exe.stx_dev_major, exe.stx_dev_minor);
        now.inode = exe.stx_ino;
    }
    *out = now;
    return true;
}

static bool live_check(struct prb_proc *proc, struct prb_error *err)
{
    struct live *live = (struct live *)proc;
    struct identity now, was = live->identity;
    if (!identify(live, &now, err))
        return false;
    if (now.starttime != was.starttime)
        return gone(live, err);
    if (now.startcode != was.startcode || now.startstack != was.startstack || now.dev != was.dev ||
        now.inode != was.inode)
        return prb_fail(err, PRB_GONE, "process %d runs another program now (exec)",
                        (int)proc->pid);
    return true;
}

static bool live_registers(struct prb_proc *proc, pid_t tid, struct prb_registers *out,
                           struct prb_error *err)
{
    (void)out;
    return prb_fail(err, PRB_UNSUPPORTED,
                    "thread %d of process %d is alive: it has to be stopped for "
                    "its registers",
                    (int)tid, (int)proc->pid);
}

static struct prb_mem *live_mem_new(struct prb_proc *proc, struct prb_error *err)
{
    struct prb_error cause = {0};
    struct prb_mem *mem = prb_mem_process_new(proc->pid, &cause);
    if (!mem && cause.code == PRB_PERMISSION)
        prb_permission_explain(err, proc->pid, cause.sys, "read the memory of");
    else if (!mem && err)
        *err = cause;
    return mem;
}

/* ---- files ---- */

static int live_open_path(struct prb_proc *proc, const char *path)
{
    struct live *live = (struct live *)proc;
    PRB_AUTO_FD int root = openat(live->folder, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? -1 : prb_open_below(root, path);
}

/* Enough to hold the ELF header, program headers and, usually, the build id. */
#define HEAD 4096

/* Whether an open file is the one that is mapped: by device and inode, or, where a file system in
 * layers shows others there (overlayfs, btrfs), by its first bytes. */
static bool is_mapped_file(struct prb_proc *proc, int fd, const struct prb_map *map)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    if (info.st_ino == map->inode && major(info.st_dev) == map->dev_major &&
        minor(info.st_dev) == map->dev_minor)
        return true;
    struct prb_mem *mem = prb_proc_mem(proc, NULL);
    uint8_t in_file[HEAD], in_memory[HEAD];
    if (map->offset || !mem)
        return false;
    ssize_t n = pread(fd, in_file, HEAD, 0);
    return n > 0 && prb_mem_read_some(mem, map->start, in_memory, (size_t)n) == (size_t)n &&
           memcmp(in_file, in_memory, (size_t)n) == 0;
}

/* What a link of /proc/PID leads to; a device that the target has mapped is not opened. */
static int open_regular(struct live *live, const char *name)
{
    char again[48];
    struct stat info;
    PRB_AUTO_FD int found = openat(live->folder, name, O_PATH | O_CLOEXEC);
    if (found < 0 || fstat(found, &info) != 0 || !S_ISREG(info.st_mode))
        return -1;
    snprintf(again, sizeof again, "/proc/self/fd/%d", found);
    return open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* The ways to a mapped file that need no privilege, each to be checked. */
static int open_candidate(struct live *live, const struct prb_map *map, unsigned way)
{
    PRB_AUTO_FD int own_root = -1;
    switch (way) {
    case 0:
        return live_open_path(&live->base, map->path);
    case 1:
        return open_regular(live, "exe");
    default:
        /* The kernel writes paths as we would see them: of a process under chroot(2) they begin at
         * our root. */
        own_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return own_root < 0 ? -1 : prb_open_below(own_root, map->path);
    }
}

static int live_open_map(struct prb_proc *proc, const struct prb_map *map, struct prb_error *err)
{
    struct live *live = (struct live *)proc;
    if (map->inode == 0) {
        prb_fail(err, PRB_NOT_FOUND, "no file is mapped at 0x%llx", (unsigned long long)map->start);
        return -1;
    }
    char name[64];
    snprintf(name, sizeof name, "map_files/%llx-%llx", (unsigned long long)map->start,
             (unsigned long long)map->end);
    int fd = open_regular(live, name);
    if (fd >= 0)
        return fd;
    if (prb_error_is_our_limit(errno)) {
        prb_fail_sys(err, errno, "cannot open %s", map->path);
        return -1;
    }
    for (unsigned way = 0; way < 3; way++) {
        fd = open_candidate(live, map, way);
        if (fd >= 0 && is_mapped_file(proc, fd, map))
            return fd;
        if (fd < 0 && prb_error_is_our_limit(errno)) {
            prb_fail_sys(err, errno, "cannot open %s", map->path);
            return -1;
        }
        if (fd >= 0)
            close(fd);
    }
    prb_fail(err, PRB_NOT_FOUND, "the file %s that process %d maps is %s", map->path,
             (int)proc->pid, map->deleted ? "deleted" : "not the one at that path");
    prb_error_remedy(err, "Run probing as root: root can open files that are mapped but no longer "
                          "at their path");
    return -1;
}

static void live_free(struct prb_proc *proc)
{
    struct live *live = (struct live *)proc;
    const int opened[] = {live->folder, live->tasks, live->maps, live->call};
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++)
        if (opened[i] >= 0)
            close(opened[i]);
    prb_proc_deinit(proc);
    free(live);
}

const struct prb_proc_ops prb_proc_live_ops = {
    .name = "process",
    .text = live_text,
    .open = live_open,
    .tids = live_tids,
    .code_maps = live_code_maps,
    .map_from = live_map_from,
    .check = live_check,
    .registers = live_registers,
    .open_map = live_open_map,
    .open_path = live_open_path,
    .mem_new = live_mem_new,
    .free = live_free,
};

/* The folder is missing: there is no such process, or we may not see it. */
static bool not_there(pid_t pid, int sys, struct prb_error *err)
{
    if (prb_error_is_our_limit(sys))
        return prb_fail_sys(err, sys, "cannot open /proc/%d", (int)pid);
    if (pid > 0 && (kill(pid, 0) == 0 || errno == EPERM)) {
        prb_fail(err, PRB_PERMISSION,
                 "process %d is hidden from you: /proc is mounted with hidepid, "
                 "or shows another pid namespace",
                 (int)pid);
        return prb_error_remedy(err, "Run probing as root: sudo probing …");
    }
    if (sys != ENOENT)
        return prb_fail_sys(err, sys, "cannot open /proc/%d", (int)pid);
    prb_fail(err, PRB_NOT_FOUND, "there is no process %d", (int)pid);
    return prb_error_remedy(err, "`probing list` shows the Python processes that run now");
}

struct prb_proc *prb_proc_open(pid_t pid, struct prb_error *err)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return PRB_NULL(not_there(pid, errno, err));
    PRB_AUTO_FREE struct live *live = calloc(1, sizeof *live);
    if (!live) {
        close(folder);
        return PRB_NULL(prb_nomem(err));
    }
    live->base =
        (struct prb_proc){.ops = &prb_proc_live_ops, .pid = pid, .exists = true, .inner = -1};
    live->folder = folder;
    live->tasks = live->maps = live->call = -1;
    if (!identify(live, &live->identity, err)) {
        close(folder);
        return NULL;
    }
    return &PRB_STEAL(live)->base;
}
