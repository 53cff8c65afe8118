/* See confined.h.  Everything is read through one descriptor of /proc/PID, so that another process
 * with the same pid cannot take its place. */
#include "inject/bytecode/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/file.h"

#define TEXT_MAX (1u << 20)

/* ---- files of /proc ---- */

static bool read_text(int folder, const char *name, struct prb_buf *out)
{
    PRB_AUTO_FD int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && prb_buf_read(out, fd, TEXT_MAX);
}

/* The value of NAME=VALUE in environ, with its name. */
static char *variable(const struct prb_buf *environment, const char *name)
{
    const char *at = environment->data, *end = at + environment->len;
    for (; at < end; at += strlen(at) + 1)
        if (strncmp(at, name, strlen(name)) == 0 && at[strlen(name)])
            return strdup(at);
    return NULL;
}

/* ---- the rules ---- */

/* python, python3, python3.11, python3.13t, python3.7m */
static bool is_python(const char *path)
{
    const char *name = strrchr(path, '/');
    return name && strncmp(name, "/python", 7) == 0 &&
           name[7 + strspn(name + 7, "0123456789.dmut")] == '\0';
}

/* Whether two links have the same text, or neither exists. */
static bool same_link(int theirs, int ours, const char *name)
{
    char a[128] = "", b[128] = "";
    ssize_t a_len = readlinkat(theirs, name, a, sizeof a);
    ssize_t b_len = readlinkat(ours, name, b, sizeof b);
    return a_len == b_len && a_len < (ssize_t)sizeof a && memcmp(a, b, sizeof a) == 0;
}

static bool same_place(int theirs, int ours)
{
    static const char *const spaces[] = {"ns/user", "ns/mnt", "ns/pid",    "ns/net",
                                         "ns/ipc",  "ns/uts", "ns/cgroup", "ns/time"};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (!same_link(theirs, ours, spaces[i]))
            return false;
    PRB_AUTO(prb_buf) struct prb_buf label = {0}, own = {0};
    bool labelled = read_text(theirs, "attr/current", &label);
    return labelled == read_text(ours, "attr/current", &own) &&
           (!labelled || strcmp(label.data, own.data) == 0);
}

/* With our own ids, or with those that root switches to. */
static bool may_be(struct prb_confined *confined, const struct prb_ids *own)
{
    const struct prb_ids *ids = &confined->ids;
    struct stat program;
    if (prb_ids_same(ids, own))
        return fstat(confined->program, &program) == 0 &&
               !(program.st_mode & (S_IWGRP | S_IWOTH)) &&
               (program.st_uid == 0 || program.st_uid == own->users[1]);
    confined->drops = true;
    return own->users[1] == 0 && ids->users[0] != 0 && ids->seccomp == own->seccomp &&
           prb_ids_all_alike(ids->users) && prb_ids_all_alike(ids->groups);
}

/* A path that we see, as a process with that root sees it. */
static void strip_root(char *path, int folder)
{
    char root[sizeof((struct prb_confined *)0)->path];
    ssize_t len = readlinkat(folder, "root", root, sizeof root);
    if (len > 1 && strncmp(path, root, (size_t)len) == 0 && path[len] == '/')
        memmove(path, path + len, strlen(path + len) + 1);
}

/* False: it has another root folder, and we may not enter it. */
static bool look_at_root(struct prb_confined *out, int folder, const struct prb_ids *own)
{
    struct stat theirs, ours;
    PRB_AUTO_FD int root = openat(folder, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(root, &theirs) != 0 || stat("/", &ours) != 0)
        return false;
    bool same = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
    if (!same) {
        out->root = PRB_STEAL_FD(root);
        strip_root(out->path, folder);
    }
    return same || own->users[1] == 0;
}

static bool look_at_program(struct prb_confined *out, int folder)
{
    out->program = openat(folder, "exe", O_RDONLY | O_CLOEXEC);
    ssize_t len = readlinkat(folder, "exe", out->path, sizeof out->path);
    struct stat info;
    if (out->program < 0 || len <= 0 || len >= (ssize_t)sizeof out->path)
        return false;
    out->path[len] = '\0';
    return fstat(out->program, &info) == 0 && S_ISREG(info.st_mode) && is_python(out->path);
}

/* The variables by which it finds its libraries; not for root. */
static void look_at_environment(struct prb_confined *out, int folder)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (out->ids.users[0] == 0 || !read_text(folder, "environ", &text))
        return;
    out->libraries = variable(&text, "LD_LIBRARY_PATH=");
    out->home = variable(&text, "PYTHONHOME=");
}

bool prb_confined_look(struct prb_confined *out, pid_t pid)
{
    char name[32];
    *out = (struct prb_confined){.program = -1, .root = -1};
    snprintf(name, sizeof name, "/proc/%d", (int)pid);
    PRB_AUTO_FD int folder = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO_FD int self = open("/proc/thread-self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct prb_ids own, again;
    if (folder < 0 || self < 0 || !prb_ids_read(self, &own) || !prb_ids_read(folder, &out->ids) ||
        !look_at_program(out, folder) || !may_be(out, &own) || !same_place(folder, self) ||
        !look_at_root(out, folder, &own))
        return false;
    look_at_environment(out, folder);
    out->ours = !out->drops && out->root < 0;
    /* Check that it has not executed another program meanwhile, perhaps with other rights. */
    return prb_ids_read(folder, &again) && prb_ids_same(&out->ids, &again);
}

void prb_confined_deinit(struct prb_confined *confined)
{
    if (confined->program >= 0)
        close(confined->program);
    if (confined->root >= 0)
        close(confined->root);
    free(confined->libraries);
    free(confined->home);
}

/* ---- confining the child ---- */

#define CAPABILITIES_MAX 64

/* Who possesses a session's keyring can read its keys, keyrings(7): our child gets an empty one.  A
 * kernel without keyrings has no keys to protect. */
static bool leave_keyring(void)
{
    return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 || errno == ENOSYS;
}

/* Beyond the kernel's last capability there is nothing to drop. */
static bool drop_bounding_set(void)
{
    int last = 0;
    while (last < CAPABILITIES_MAX && prctl(PR_CAPBSET_READ, last) >= 0)
        if (prctl(PR_CAPBSET_DROP, last++) != 0)
            return false;
    return true;
}

static bool drop_rights(const struct prb_ids *ids)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    return leave_keyring() && drop_bounding_set() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_setgroups, (long)ids->more_count, ids->more) == 0 &&
           syscall(SYS_setresgid, ids->groups[0], ids->groups[0], ids->groups[0]) == 0 &&
           syscall(SYS_setresuid, ids->users[0], ids->users[0], ids->users[0]) == 0 &&
           syscall(SYS_capset, &head, none) == 0;
}

bool prb_confined_enter(const struct prb_confined *confined)
{
    if (confined->root >= 0 && (fchdir(confined->root) != 0 || syscall(SYS_chroot, ".") != 0))
        return false;
    return chdir("/") == 0 && (!confined->drops || drop_rights(&confined->ids)) &&
           setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}) == 0;
}
