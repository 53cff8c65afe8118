/*
 * Why the kernel refuses to show a process: the rules of ptrace(2), "Ptrace access mode checking",
 * asked one by one, so that the message names the one that refused and the remedy fits it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/file.h"
#include "proc/source.h"
#include "proc/stat.h"

#define CAP_SYS_PTRACE_BIT 19

/* -1 when this kernel has no Yama. */
static int yama_scope(void)
{
    char text[16];
    return prb_read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text) < 0 ? -1
                                                                                      : atoi(text);
}

static bool has_ptrace_capability(void)
{
    char text[4096];
    if (prb_read_text("/proc/self/status", text, sizeof text) < 0)
        return false;
    const char *line = strstr(text, "\nCapEff:");
    return line && (strtoull(line + 8, NULL, 16) >> CAP_SYS_PTRACE_BIT & 1);
}

/* Real, effective and saved user of a process; false when they are unknown. */
static bool users_of(pid_t pid, unsigned users[3])
{
    char path[48], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (prb_read_text(path, text, sizeof text) < 0)
        return false;
    const char *line = strstr(text, "\nUid:");
    return line && sscanf(line + 5, "%u %u %u", &users[0], &users[1], &users[2]) == 3;
}

/* The files of a process that may not be dumped are owned by root: proc(5). */
static bool files_are_roots(pid_t pid)
{
    char path[48];
    struct stat info;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    return stat(path, &info) == 0 && info.st_uid == 0;
}

static bool in_container(void)
{
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
           getenv("KUBERNETES_SERVICE_HOST") != NULL;
}

static bool no_capability_as_root(struct prb_error *err, pid_t pid, const char *what)
{
    prb_fail(err, PRB_PERMISSION,
             "cannot %s process %d: you are root, but without the capability CAP_SYS_PTRACE%s",
             what, (int)pid, in_container() ? " (a container's default)" : "");
    return prb_error_remedy(err, "Start the container with --cap-add=SYS_PTRACE (Kubernetes: "
                                 "securityContext.capabilities.add: [SYS_PTRACE]), or run probing "
                                 "on the host");
}

static bool other_user(struct prb_error *err, pid_t pid, const char *what, unsigned user)
{
    prb_fail(err, PRB_PERMISSION,
             "cannot %s process %d: it belongs to user id %u and you are user id %u", what,
             (int)pid, user, (unsigned)geteuid());
    return prb_error_remedy(err, "Run probing as that user, or as root: sudo probing …");
}

static bool yama_refuses(struct prb_error *err, pid_t pid, const char *what, int scope)
{
    static const char *const rules[] = {"", "only a parent may look into a process",
                                        "only root may look into a process",
                                        "nobody may look into a process"};
    prb_fail(err, PRB_PERMISSION, "cannot %s process %d: kernel.yama.ptrace_scope is %d (%s)", what,
             (int)pid, scope, rules[scope]);
    if (scope >= 3)
        return prb_error_remedy(err,
                                "Only a reboot with another kernel.yama.ptrace_scope changes this; "
                                "a core file of the process can still be read");
    return prb_error_remedy(err, "Run probing as root: sudo probing …%s",
                            scope == 1 ? ", or allow it until the next boot: sudo sysctl "
                                         "kernel.yama.ptrace_scope=0"
                                       : "");
}

bool prb_permission_explain(struct prb_error *err, pid_t pid, int sys, const char *what)
{
    unsigned user = (unsigned)geteuid(), users[3] = {user, user, user};
    bool known = users_of(pid, users), same = true;
    for (int i = 0; i < 3; i++)
        same = same && users[i] == user;
    int scope = yama_scope();
    if (prb_task_ending(pid, pid))
        return prb_fail(err, PRB_GONE, "process %d is ending", (int)pid);
    if (scope == 3)
        return yama_refuses(err, pid, what, scope);
    if (has_ptrace_capability()) {
        prb_fail_sys(err, sys,
                     "cannot %s process %d, although you have the capability CAP_SYS_PTRACE", what,
                     (int)pid);
        if (err)
            err->code = PRB_PERMISSION;
        return prb_error_remedy(
            err, "The process is in another user namespace, or a security module "
                 "(SELinux, AppArmor) or seccomp filter forbids it: run probing on the "
                 "host, outside containers, as root");
    }
    if (user == 0)
        return no_capability_as_root(err, pid, what);
    if (known && !same)
        return other_user(err, pid, what, users[0]);
    if (files_are_roots(pid)) {
        prb_fail(err, PRB_PERMISSION,
                 "cannot %s process %d: it is marked as not dumpable (prctl PR_SET_DUMPABLE, or a "
                 "program with capabilities)",
                 what, (int)pid);
        return prb_error_remedy(err, "Run probing as root: sudo probing …");
    }
    if (scope == 1 || scope == 2)
        return yama_refuses(err, pid, what, scope);
    prb_fail_sys(err, sys, "cannot %s process %d", what, (int)pid);
    if (err)
        err->code = PRB_PERMISSION;
    return prb_error_remedy(err,
                            "A security module (SELinux, AppArmor) or a seccomp filter forbids it: "
                            "run probing as root, outside containers");
}

/* mm_access() asks for the same as any read, before the address: EFAULT is "allowed". */
bool prb_process_permits(pid_t pid, struct prb_error *err)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {NULL, 1};
    if (process_vm_readv(pid, &to, 1, &from, 1, 0) >= 0 || errno == EFAULT)
        return true;
    if (errno == ESRCH)
        return prb_fail(err, PRB_GONE, "process %d ended", (int)pid);
    return prb_permission_explain(err, pid, errno, "look into");
}
